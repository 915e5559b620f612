"""Details of the tokens of a translation: probability, characters, aligned source token."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from manyheads.data.batching.batches import pad
from manyheads.lens.measures.alignment_head import layers
from manyheads.nn.recording.trace import record

if TYPE_CHECKING:
    from manyheads.data.tokenizers.tokenizer import Piece, TextTokenizer
    from manyheads.decode.step import Hypothesis
    from manyheads.lens.view.text_view import Span


@dataclass(frozen=True, slots=True)
class OutputToken:
    """One token of a translation; it covers the characters [begin, end).

    Of a character encoded as bytes, the last byte covers it and the others cover nothing.
    """

    text: str  # as the tokenizer returns it
    probability: float  # given the source and the tokens before it
    begin: int
    end: int
    source: "Piece | None" = None  # the source token with the largest attention weight
    share: float | None = None  # that weight

    def rounded(self) -> dict[str, Any]:
        """Return what an answer says of it, but for the source."""
        own = {"probability": round(self.probability, 6), "begin": self.begin, "end": self.end}
        return {"token": self.text, **own}


def describe(
    tokenizer: "TextTokenizer",
    text: str,
    output: "Hypothesis",
    read: Sequence[tuple["Piece", float]] = (),
) -> list[OutputToken]:
    """Describe the tokens of a translation.

    `read` has for each token its aligned source token and weight; it is empty if not aligned.
    """
    # Decoding every prefix works with any tokenizer, and with characters encoded as bytes.
    beginnings = tokenizer.decode([output.tokens[:count] for count in range(1, len(output.tokens))])
    ends = [0, *(_common(text, each) for each in beginnings), len(text)]
    found = []
    for n, (token, (begin, end)) in enumerate(zip(output.tokens, pairwise(ends), strict=False)):
        first = behind_space(text, begin, end)
        probability = exp(output.token_log_probabilities[n])
        source, share = read[n] if read else (None, None)
        found.append(OutputToken(tokenizer.piece(token), probability, first, end, source, share))
    return found


def behind_space(text: str, begin: int, end: int) -> int:
    """Return the first character of a token after its leading space."""
    return end - len(text[begin:end].lstrip(" "))


def spans(tokenizer: "TextTokenizer", text: str) -> list["Span | None"]:
    """Return the characters that each token of a text covers; None: a byte, a language code."""
    covered = [(behind_space(text, p.begin, p.end), p.end) for p in tokenizer.pieces(text)]
    return [[begin, end] if begin < end else None for begin, end in covered]


def _common(left: str, right: str) -> int:
    return next(
        (n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b),
        min(len(left), len(right)),
    )


def attention_over_source(
    model: nn.Module, source: Tensor, outputs: Sequence[Sequence[int]], *, start: int, padding: int
) -> dict[int, Tensor]:
    """Run a model on whole outputs; return its cross-attention maps, layer by layer."""
    target = pad([[start, *tokens] for tokens in outputs], padding).to(source.device)
    with record() as trace:
        model(source, target, torch.zeros_like(target, dtype=torch.bool))  # no logits are needed
    return layers(trace)
