"""precision = "auto": measured on the real thing, which stays as it was."""

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from manyheads.errors import TrainingError
from manyheads.train import precision
from manyheads.train.precision import CANDIDATES, ROUNDS, fastest, measure
from manyheads.train.training_task import Indices, Loss
from tests.train.toy import Plane, Points, network


def test_bf16_must_gain_more_than_a_tenth() -> None:
    """fp32 is the more exact, so it wins when the two are about level, or alone."""
    assert fastest({"fp32": 1.0, "bf16": 0.5}) == "bf16"
    assert fastest({"fp32": 1.0, "bf16": 0.95}) == "fp32"
    assert fastest({"fp32": 1.0, "bf16": 4.0}) == "fp32"
    assert fastest({"fp32": 1.0}) == "fp32"


def test_measuring_changes_nothing() -> None:
    """Neither weights nor gradients nor the random stream."""
    model = network()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    torch.manual_seed(0)
    seconds = measure(model, Plane())
    drawn = torch.rand(3)
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.rand(3))
    assert set(seconds) <= set(CANDIDATES)
    assert min(seconds.values()) > 0
    for old, new in zip(before, model.parameters(), strict=True):
        assert torch.equal(old, new)
        assert new.grad is None


def test_nothing_to_measure_on() -> None:
    """Said before training says it."""
    with pytest.raises(TrainingError, match="nothing to train on"):
        measure(network(), Plane(points=0))


@pytest.mark.parametrize("candidates", [CANDIDATES, CANDIDATES[:1]])
def test_each_precision_is_computed_in(
    monkeypatch: pytest.MonkeyPatch, candidates: tuple[str, ...]
) -> None:
    """In turns, and the first of each is for warming up; bf16 only where there are instructions."""
    monkeypatch.setattr(precision, "multiplies_bf16", lambda device: "bf16" in candidates)

    class Watched(Plane):
        def loss(self, model: nn.Module, batch: Points) -> Loss:
            computed.append(model(batch.x).dtype)
            assert model.training
            return super().loss(model, batch)

    computed: list[torch.dtype] = []
    seconds = measure(network().eval(), Watched())
    assert computed == [torch.float32, torch.bfloat16][: len(candidates)] * (1 + ROUNDS)
    assert tuple(seconds) == candidates


def test_the_batch_of_the_middle_length_is_measured() -> None:
    """Of the first epoch's; neither the quickest nor the slowest."""

    class Uneven(Plane):
        def plan(self, epoch: int, rank: int = 0, world: int = 1) -> list[Indices]:
            assert epoch == 0
            return [np.arange(length) for length in (5, 1, 4, 2, 3)]

        def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[Points]:
            assert epoch == 0
            return super().load(epoch, batches)

    task = Uneven()
    measure(network(), task)
    assert {len(seen) for seen in task.seen} == {3}


def test_the_best_round_counts_but_not_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock: fp32 takes 1, 5, 3 and 4 seconds, bf16 one more each time."""
    durations = iter((1, 2, 5, 6, 3, 4, 4, 5))
    now = iter([moment for duration in durations for moment in (0.0, float(duration))])
    monkeypatch.setattr(precision, "multiplies_bf16", lambda device: True)
    monkeypatch.setattr(precision, "time", SimpleNamespace(perf_counter=lambda: next(now)))
    assert measure(network(), Plane()) == {"fp32": 3.0, "bf16": 4.0}
