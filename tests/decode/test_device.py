"""A search computes where its model is: no tensor of it is made on another device."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from manyheads.decode.beam import beam_search
from manyheads.decode.beam_selection import Diverse
from manyheads.decode.constraints import (
    ForcedEnd,
    ForcedPrefix,
    MinLength,
    NoRepeatNgram,
    Renormalise,
    Rule,
    SuppressTokens,
)
from manyheads.decode.coverage import Coverage
from manyheads.decode.greedy import greedy_search
from manyheads.decode.phrases import PhraseConstraint
from manyheads.decode.sampling import Sampling, sample
from manyheads.nn.layers.masks import padding_mask
from manyheads.nn.recording.trace import record
from tests import reverser

CONFIG = reverser.CONFIG
ROWS = reverser.words(6, seed=1)
LIMITS = [len(row) + 3 for row in ROWS]
ENDS: dict[str, Any] = {"start": CONFIG.start, "end": CONFIG.end}
RULES: list[Rule] = [
    SuppressTokens([CONFIG.pad]),
    Renormalise(),
    MinLength(2, end=CONFIG.end),
    NoRepeatNgram(3),
    ForcedPrefix([[3]] * len(ROWS)),
    ForcedEnd(LIMITS, end=CONFIG.end),
]


def greedy(source: torch.Tensor, **more: Any) -> object:
    return greedy_search(reverser.trained(), source, LIMITS, **ENDS, **more)


def beams(source: torch.Tensor, **more: Any) -> object:
    return beam_search(reverser.trained(), source, LIMITS, beams=4, **ENDS, **more)


def drawn(source: torch.Tensor, **more: Any) -> object:
    how = Sampling(temperature=0.8, top_k=5, top_p=0.9)
    seeds = list(range(len(ROWS)))
    return sample(
        reverser.trained(), source, LIMITS, seeds, samples=2, sampling=how, **ENDS, **more
    )


def covered(source: torch.Tensor) -> object:
    real = padding_mask(source, CONFIG.pad)[:, 0, 0]
    model = Coverage(reverser.trained(), real, 0.2)
    return beam_search(model, source, LIMITS, beams=4, bonus=model.bonus, **ENDS)


def recorded(source: torch.Tensor) -> object:
    with record():
        return beams(source)


SEARCHES: dict[str, Callable[[torch.Tensor], object]] = {
    "greedy": greedy,
    "greedy with rules": lambda source: greedy(source, rules=RULES),
    "beams": beams,
    "beams with rules": lambda source: beams(source, rules=RULES),
    "diverse": lambda source: beams(source, choose=Diverse(2, 0.5)),
    "phrases": lambda source: beams(
        source, choose=PhraseConstraint([[[4]], *[[]] * (len(ROWS) - 1)], LIMITS)
    ),
    "sampling": drawn,
    "sampling with rules": lambda source: drawn(source, rules=RULES),
    "coverage": covered,
    "recorded": recorded,
}


@pytest.mark.parametrize("name", SEARCHES)
def test_everything_is_made_where_the_model_is(name: str) -> None:
    """Tensors that are made without saying where lie on a device without values here.

    They cannot be mixed with those of the model, as on a machine with a GPU.
    """
    source = reverser.padded(ROWS)
    expected = SEARCHES[name](source)
    with torch.device("meta"):
        assert SEARCHES[name](source) == expected
