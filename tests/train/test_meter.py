"""Means and speed between two lines of the log, by a clock that the test turns."""

import math
from dataclasses import asdict

import pytest

from manyheads.strict_json import dumps
from manyheads.train import meter
from manyheads.train.checkpoint import PROGRESS, Progress
from manyheads.train.meter import Meter, Sums


class Clock:
    """In the place of the module `time`."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(meter, "time", found)
    return found


def test_two_lines_by_hand(clock: Clock) -> None:
    """Each has the means of its own steps; validation counts as time, but not for the speed."""
    found = Meter("tokens", 10.0, Sums())  # of the run before it was resumed
    clock.now += 2
    found.add(3.0, {"accuracy": 0.5}, 100)
    clock.now += 1
    found.add(1.0, {"accuracy": 1.0}, 61)
    assert found.line(2, 0, 0.1) == {
        "step": 2,
        "epoch": 0,
        "seconds": 13.0,
        "loss": 2.0,
        "accuracy": 0.75,
        "learning_rate": 0.1,
        "tokens_per_second": 53.7,  # 161 / 3
    }
    clock.now += 5.125
    assert found.skip() == 18.125  # a validation
    clock.now += 4
    found.add(0.5, {}, 10)
    assert found.line(3, 1, 0.2) == {
        "step": 3,
        "epoch": 1,
        "seconds": 22.12,
        "loss": 0.5,
        "learning_rate": 0.2,
        "tokens_per_second": 2.5,
    }


def test_steps_between_two_ticks_of_the_clock(clock: Clock) -> None:
    """Some machines' clocks stand still for a hundredth of a second: no division by zero."""
    found = Meter("images", 0.0, Sums())
    found.add(1.0, {}, 8)
    assert found.line(1, 0, 0.1)["images_per_second"] > 0


def test_sums_are_stored_exactly() -> None:
    """As JSON, also where a mean is not a number, which JSON lacks."""
    sums = Sums(3, 24, 0.1, {"loss": 0.1 + 0.2, "accuracy": math.nan})
    progress = PROGRESS.validate_json(dumps(asdict(Progress(unlogged=sums))))
    assert progress.unlogged.values.pop("loss") == 0.1 + 0.2
    assert math.isnan(progress.unlogged.values["accuracy"])
