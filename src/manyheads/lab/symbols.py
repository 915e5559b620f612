"""Synthetic sequences of symbols: tasks that ask for one ability, and nothing else."""

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from manyheads.data.monolingual import Sentences
from manyheads.data.text import Corpus
from manyheads.data.tokenizer import UNKNOWN, Piece, Tokenizers
from manyheads.streams import generator
from manyheads.tasks.tokenwise import NOTHING, Examples, TokenTask, TokenTrainConfig, measure
from manyheads.tasks.translate import EvaluateConfig, TranslateTask, TranslateTrainConfig

FIRST = UNKNOWN + 1  # the token of symbol 0, behind the special ones
BATCH = 8192  # tokens, when measuring

C = TypeVar("C", TokenTrainConfig, TranslateTrainConfig)


def training(
    kind: type[C], steps: int, max_tokens: int, rate: float, *, warmup: int | None = None
) -> C:
    """How models of symbols are trained: a tenth of warm-up, and validation at the end alone."""
    return kind(
        steps=steps,
        max_tokens=max_tokens,
        learning_rate=rate,
        warmup=max(steps // 10, 1) if warmup is None else warmup,
        validate_every=steps,
        save_every=steps,
        log_every=max(steps // 10, 1),
    )


class Symbols:
    """A tokenizer of texts such as "3 1 4": one token a number below `count`."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        """Count the vocabulary, special tokens included."""
        return FIRST + self.count

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into token ids, without start and end."""
        return [[FIRST + int(word) for word in text.split()] for text in texts]

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        """Turn token ids back into text; special tokens are silent."""
        return [" ".join(str(t - FIRST) for t in tokens if t >= FIRST) for tokens in sequences]

    def piece(self, token: int) -> str:
        """Show one token."""
        return str(token - FIRST) if token >= FIRST else ("<pad>", "<s>", "</s>", "<unk>")[token]

    def pieces(self, text: str) -> list[Piece]:
        """Split a text and say which of its characters each token stands for."""
        found, end = [], 0
        for word in text.split():
            begin = text.index(word, end)
            end = begin + len(word)
            found.append(Piece(word, FIRST + int(word), begin, end))
        return found


def random_texts(
    count: int, lengths: Sequence[int], symbols: int, *, seed: int, name: str
) -> list[str]:
    """Draw texts of random symbols, each of a length drawn from `lengths`."""
    random = generator(seed, f"lab {name}")
    drawn = random.choice(np.asarray(lengths), count)
    return [" ".join(map(str, random.integers(0, symbols, length))) for length in drawn]


def copying(
    train: Sequence[str],
    valid: Sequence[str],
    symbols: int,
    config: TranslateTrainConfig,
    *,
    seed: int,
) -> TranslateTask:
    """Make the task to say again what was read."""
    tokenizer = Symbols(symbols)
    return TranslateTask(
        Corpus(list(train), list(train), "symbols"),
        Corpus(list(valid), list(valid), "symbols"),
        Tokenizers(tokenizer, tokenizer),
        config,
        EvaluateConfig(metrics=("exact",)),
        seed=seed,
    )


class Asked(Examples):
    """Token ids, and the right answer at each token that is asked about, else NOTHING."""

    def __init__(self, tokens: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]]) -> None:
        super().__init__(Sentences([""] * len(tokens), "symbols"), tokens)
        self.wanted = wanted

    def example(self, index: int, epoch: int) -> tuple[list[int], list[int]]:
        """Give the tokens and the answers."""
        return list(self.sequences[index]), list(self.wanted[index])


def asking(train: Asked, valid: Asked, config: TokenTrainConfig, *, seed: int) -> TokenTask:
    """Make the task to answer at the tokens that are asked about."""
    return TokenTask(train, valid, config, partial(measure), seed=seed)


def keeping(
    distances: Sequence[int], count: int, symbols: int, *, seed: int, name: str, before: int = 4
) -> Asked:
    """Ask, at the end, for the one symbol that stood behind a mark, `distance` symbols before.

    A text is noise, mark, the symbol to keep, `distance` symbols of noise, question.
    """
    random = generator(seed, f"lab keeping {name}")
    mark, question = FIRST + symbols, FIRST + symbols + 1
    tokens, wanted = [], []
    for distance in random.choice(np.asarray(distances), count):
        first = int(random.integers(0, before + 1))
        noise = (FIRST + random.integers(0, symbols, first + int(distance))).tolist()
        kept = int(random.integers(0, symbols))
        tokens.append([*noise[:first], mark, FIRST + kept, *noise[first:], question])
        wanted.append([NOTHING] * (len(tokens[-1]) - 1) + [kept])
    return Asked(tokens, wanted)


def looking_back(
    lengths: Sequence[int], count: int, symbols: int, back: Sequence[int], *, seed: int, name: str
) -> Asked:
    """Ask at every token for the symbols that stand so many places before it, as one answer.

    With several places the answer is a number in base `symbols`: each place is a digit of it.
    """
    random = generator(seed, f"lab looking back {name}")
    tokens, wanted = [], []
    for length in random.choice(np.asarray(lengths), count):
        drawn = random.integers(0, symbols, int(length))
        answers = np.full(int(length), NOTHING)
        answers[max(back) :] = sum(
            symbols**digit * drawn[max(back) - place : len(drawn) - place]
            for digit, place in enumerate(back)
        )
        tokens.append((FIRST + drawn).tolist())
        wanted.append(answers.tolist())
    return Asked(tokens, wanted)
