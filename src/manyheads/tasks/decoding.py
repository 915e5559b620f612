"""Texts in, translations out: tokenize, search, put in order again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast

import torch
from torch import nn

from manyheads.data.batches import pad
from manyheads.data.tokenizer import Tokenizers
from manyheads.decode.beam import beam_search
from manyheads.decode.greedy import greedy_search
from manyheads.decode.step import Hypothesis, Step
from manyheads.train.config import Count

ROWS = 256  # sentences x beams decoded at a time


@dataclass(frozen=True, kw_only=True)
class DecodeConfig:
    """The [decode] table: how a trained translator searches."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    beams: Count = 4  # 1 is greedy
    length_penalty: float = 1.0


@dataclass(frozen=True, slots=True)
class Translation:
    """One translation of one text, and the search's account of it."""

    text: str
    score: float  # log-probability / length ** length_penalty
    log_probability: float
    tokens: list[int]
    finished: bool  # False: cut off at the length limit


class SpecialIds(Protocol):
    """The ids that every translating model's config names."""

    @property
    def pad(self) -> int: ...  # noqa: D102
    @property
    def start(self) -> int: ...  # noqa: D102
    @property
    def end(self) -> int: ...  # noqa: D102


def special_ids(model: nn.Module) -> SpecialIds:
    """Say what a model pads with, and what its targets start and end with."""
    return cast(SpecialIds, model.config)


@torch.inference_mode()
def translate(
    model: nn.Module,
    tokenizers: Tokenizers,
    texts: Sequence[str],
    decode: DecodeConfig,
    *,
    n_best: int = 1,
) -> list[list[Translation]]:
    """Translate texts; return the n_best translations of each, in the order of the texts.

    Texts of like length are decoded together; what a text becomes does not depend on the others.
    An empty text stays empty.
    """
    assert isinstance(model, Step)
    ids = special_ids(model)
    device = next(model.parameters()).device
    sources = [[*tokens, ids.end] for tokens in tokenizers.source.encode(texts)]
    waiting = sorted(
        (i for i, text in enumerate(texts) if text.strip()), key=lambda i: len(sources[i])
    )
    results = [[Translation("", 0.0, 0.0, [], True)] for _ in texts]
    beams = max(decode.beams, n_best)
    rows = max(1, ROWS // beams)
    for first in range(0, len(waiting), rows):
        chosen = waiting[first : first + rows]
        batch = pad([sources[i] for i in chosen], ids.pad).to(device)
        # A limit of the sentence alone, so that its output does not depend on its batch.
        limits = [2 * len(sources[i]) + 16 for i in chosen]
        found: list[list[Hypothesis]]
        if beams == 1:
            found = [
                [best] for best in greedy_search(model, batch, limits, start=ids.start, end=ids.end)
            ]
        else:
            found = beam_search(
                model,
                batch,
                limits,
                beams=beams,
                start=ids.start,
                end=ids.end,
                length_penalty=decode.length_penalty,
                n_best=n_best,
            )
        for i, hypotheses in zip(chosen, found, strict=True):
            decoded = tokenizers.target.decode([hypothesis.tokens for hypothesis in hypotheses])
            results[i] = [
                Translation(text, h.score, h.log_probability, h.tokens, h.finished)
                for text, h in zip(decoded, hypotheses, strict=True)
            ]
    return results
