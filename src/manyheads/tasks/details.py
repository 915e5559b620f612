"""A translation token by token: how likely each was, where it stands, what it was made from."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp

import torch
from torch import Tensor, nn

from manyheads.data.batches import pad
from manyheads.data.tokenizer import Piece, TextTokenizer
from manyheads.decode.step import Hypothesis
from manyheads.lens.alignment import Reader, fallback, layers, links, read
from manyheads.lens.view import Span
from manyheads.nn.trace import record

Reading = tuple[int, float]  # a source token, and the share of the attention that goes to it


@dataclass(frozen=True, slots=True)
class OutputToken:
    """One token of a translation; it stands for the characters [begin, end) of it.

    Of a character that is spelled in bytes, the last byte stands for it and the others for nothing.
    """

    text: str  # as the tokenizer writes it
    probability: float  # given the source and the tokens before it
    begin: int
    end: int
    source: Piece | None = None  # the token of the text that it read most
    share: float | None = None  # of its attention that went there


def describe(
    tokenizer: TextTokenizer,
    text: str,
    output: Hypothesis,
    read: Sequence[tuple[Piece, float]] = (),
) -> list[OutputToken]:
    """Describe the tokens of a translation.

    Args:
        tokenizer: of the target.
        text: the translation.
        output: its tokens and their probabilities.
        read: for each token the source token that it read most, and how much, if that is known.
    """
    # Decoding ever longer beginnings works with any tokenizer, and with bytes of a character too.
    beginnings = tokenizer.decode([output.tokens[:count] for count in range(1, len(output.tokens))])
    ends = [0, *(_common(text, each) for each in beginnings), len(text)]
    described = []
    for n, (token, (begin, end)) in enumerate(zip(output.tokens, pairwise(ends), strict=False)):
        first = behind_space(text, begin, end)
        probability = exp(output.token_log_probabilities[n])
        source, share = read[n] if read else (None, None)
        described.append(
            OutputToken(tokenizer.piece(token), probability, first, end, source, share)
        )
    return described


def behind_space(text: str, begin: int, end: int) -> int:
    """Say where the characters of a token begin: a space in front belongs to no word."""
    return end - len(text[begin:end].lstrip(" "))


def spans(tokenizer: TextTokenizer, text: str) -> list[Span | None]:
    """Say which characters of a text each of its tokens stands for; None: a byte, a language."""
    found = [
        (behind_space(text, piece.begin, piece.end), piece.end) for piece in tokenizer.pieces(text)
    ]
    return [[begin, end] if begin < end else None for begin, end in found]


def _common(left: str, right: str) -> int:
    """Count the characters with which both begin."""
    return next(
        (n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b),
        min(len(left), len(right)),
    )


def readings(
    model: nn.Module,
    source: Tensor,
    lengths: Sequence[int],
    outputs: Sequence[Sequence[int]],
    *,
    start: int,
    padding: int,
    reader: Reader | None = None,
) -> list[list[Reading]]:
    """Say which source token each token of each output comes from, and how much was read of it.

    The model reads source and output once more, as in training, with a recorder open. The end of
    the source is not counted: much attention rests there when there is nothing to read.

    Args:
        model: an encoder-decoder.
        source: token ids, padded, a row for each output.
        lengths: of the sources, without their end.
        outputs: token ids without start and end.
        start: the token a target begins with.
        padding: the token that fills short rows.
        reader: the attention that says so; without one it is not measured which does: see
            `lens.alignment.fallback`.

    Raises:
        UsageError: the model has no attention over the source, or not this one.
    """
    maps = attention_over_source(model, source, outputs, start=start, padding=padding)
    weights = read(maps, reader or fallback(maps))
    return [
        [(place, share) for _, place, share in links(row, len(tokens), length)]
        for row, length, tokens in zip(weights, lengths, outputs, strict=True)
    ]


def attention_over_source(
    model: nn.Module,
    source: Tensor,
    outputs: Sequence[Sequence[int]],
    *,
    start: int,
    padding: int,
) -> dict[int, Tensor]:
    """Let a model read outputs whole, the last token too; return its maps, layer by layer."""
    target = pad([[start, *tokens] for tokens in outputs], padding).to(source.device)
    with record() as trace:
        model(source, target, torch.zeros_like(target, dtype=torch.bool))  # no logits are needed
    return layers(trace)
