"""Synthetic tasks on sequences of symbols, each testing a single ability."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from torch import nn

from manyheads.data.text.corpus import Sentences
from manyheads.data.tokenizers.tokenizer import UNKNOWN, Piece
from manyheads.labs.lab_training import Learned, learn, training
from manyheads.models.tagger import EncoderTaggerConfig, RecurrentTaggerConfig
from manyheads.models.transformer import TransformerConfig
from manyheads.nn.rnn import CellName
from manyheads.streams import generator
from manyheads.tokenwise.token_task import IGNORED, Examples, TokenTask, TokenTrainConfig, measure

FIRST = UNKNOWN + 1  # the token of symbol 0, after the special tokens
BATCH = 8192  # tokens, when measuring


def widths(vocabulary: int, dim: int, heads: int = 4) -> dict[str, Any]:
    """The widths of a small Transformer of texts, without dropout."""
    widths = {"vocabulary": vocabulary, "dim": dim, "heads": heads, "ffn_dim": 2 * dim}
    return widths | {"dropout": 0.0}


def encoder(vocabulary: int, classes: int, dim: int, *, layers: int = 2) -> EncoderTaggerConfig:
    """A small encoder that labels tokens."""
    return EncoderTaggerConfig(classes=classes, layers=layers, **widths(vocabulary, dim))


def one_way(
    cell: CellName, vocabulary: int, classes: int, dim: int, hidden_size: int
) -> RecurrentTaggerConfig:
    """A recurrent network that labels tokens and knows only what came before, without dropout."""
    sizes = dict[str, Any](vocabulary=vocabulary, classes=classes, dim=dim, hidden_size=hidden_size)
    return RecurrentTaggerConfig(cell=cell, bidirectional=False, dropout=0.0, **sizes)


def translator(vocabulary: int, dim: int, *, layers: int = 2, heads: int = 4) -> TransformerConfig:
    """A small pre-norm Transformer with as many layers on each side."""
    sizes = widths(vocabulary, dim, heads) | {"encoder_layers": layers, "decoder_layers": layers}
    return TransformerConfig(norm="pre", **sizes)


class Symbols:
    """A tokenizer of texts such as "3 1 4": one token per number below `count`."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        """Return the size of the vocabulary, special tokens included."""
        return FIRST + self.count

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into token ids, without start and end."""
        return [[FIRST + int(word) for word in text.split()] for text in texts]

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        """Turn token ids back into text; special tokens are skipped."""
        return [" ".join(str(t - FIRST) for t in tokens if t >= FIRST) for tokens in sequences]

    def piece(self, token: int) -> str:
        """Return the text of one token."""
        return str(token - FIRST) if token >= FIRST else ("<pad>", "<s>", "</s>", "<unk>")[token]

    def pieces(self, text: str) -> list[Piece]:
        """Split a text into tokens, each with the characters that it covers."""
        words = re.finditer(r"\S+", text)
        return [Piece(word[0], FIRST + int(word[0]), *word.span()) for word in words]


def random_texts(
    count: int, lengths: Sequence[int], symbols: int, *, seed: int, name: str
) -> list[str]:
    """Draw texts of random symbols, each of a length drawn from `lengths`."""
    random = generator(seed, f"lab {name}")
    drawn = random.choice(np.asarray(lengths), count)
    return [" ".join(map(str, random.integers(0, symbols, length))) for length in drawn]


class Labelled(Examples):
    """Token ids, and the target of each token, or IGNORED."""

    def __init__(self, tokens: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> None:
        super().__init__(Sentences([""] * len(tokens), "symbols"), tokens)
        self.targets = targets

    def example(self, index: int, epoch: int) -> tuple[list[int], list[int]]:
        """Return the tokens and their targets."""
        return list(self.sequences[index]), list(self.targets[index])


def learn_labels(
    model: nn.Module, train: Labelled, valid: Labelled, rate: float, *, seed: int, **settings: Any
) -> Learned:
    """Train a model to predict the targets of tokens; `settings` are of its [train] table."""
    config = training(TokenTrainConfig, rate=rate, **settings)
    return learn(model, TokenTask(train, valid, config, partial(measure), seed=seed))


def accuracy(model: nn.Module, texts: Labelled) -> float:
    """Accuracy of the targets in percent."""
    return measure(model, texts, BATCH)["accuracy"]


def delayed_recall(
    distances: Sequence[int], count: int, symbols: int, *, seed: int, name: str, before: int = 4
) -> Labelled:
    """Build texts whose target, at the end, is the symbol after a mark, `distance` symbols before.

    A text is noise, mark, the symbol to remember, `distance` symbols of noise, question.
    """
    random = generator(seed, f"lab keeping {name}")
    mark, question = FIRST + symbols, FIRST + symbols + 1
    tokens, wanted = [], []
    for distance in random.choice(np.asarray(distances), count):
        first = int(random.integers(0, before + 1))
        noise = (FIRST + random.integers(0, symbols, first + int(distance))).tolist()
        kept = int(random.integers(0, symbols))
        tokens.append([*noise[:first], mark, FIRST + kept, *noise[first:], question])
        wanted.append([IGNORED] * (len(tokens[-1]) - 1) + [kept])
    return Labelled(tokens, wanted)


def looking_back(
    lengths: Sequence[int], count: int, symbols: int, back: Sequence[int], *, seed: int, name: str
) -> Labelled:
    """Build texts where the target of a token are the symbols `back` positions before it.

    With several positions the target is a number in base `symbols`: each position is a digit.
    """
    random = generator(seed, f"lab looking back {name}")
    tokens, wanted = [], []
    for length in random.choice(np.asarray(lengths), count):
        drawn = random.integers(0, symbols, int(length))
        answers = np.full(int(length), IGNORED)
        answers[max(back) :] = sum(
            symbols**digit * drawn[max(back) - offset : len(drawn) - offset]
            for digit, offset in enumerate(back)
        )
        tokens.append((FIRST + drawn).tolist())
        wanted.append(answers.tolist())
    return Labelled(tokens, wanted)
