"""Averaged weights: by hand, in the loop, and over an interruption."""

from contextlib import suppress
from pathlib import Path

import pytest
import torch
from torch import nn

from manyheads.errors import UsageError
from manyheads.train.average import (
    Average,
    CheckpointAverage,
    ExponentialAverage,
    TowardStart,
    average,
    averaged,
)
from manyheads.train.train_config import EarlyStop
from tests.train.toy import Plane, Scripted, Unplugged, config, network, run


def single(value: float) -> nn.Linear:
    layer = nn.Linear(1, 1, bias=False)
    nn.init.constant_(layer.weight, value)
    return layer


def first(model: nn.Module) -> torch.Tensor:
    """A copy of the first parameter."""
    return next(model.parameters()).detach().clone()


def test_moving_average_by_hand() -> None:
    """At decay .5: 8, then (8 + 4) / 2, then (6 + 2) / 2."""
    model, ema = single(8.0), ExponentialAverage(0.5)
    seen = []
    for step, value in enumerate((8.0, 4.0, 2.0), 100):  # late enough for the decay to be full
        nn.init.constant_(model.weight, value)
        ema.after_step(model, step)
        seen.append(ema.weights()["weight"].item())
    assert seen == [8.0, 6.0, 4.0]


def test_the_first_steps_count_little() -> None:
    """At step 1 the average keeps 1/11 of what was before, whatever its decay."""
    model, ema = single(11.0), ExponentialAverage(0.999)
    ema.after_step(model, 1)
    nn.init.constant_(model.weight, 0.0)
    ema.after_step(model, 1)
    assert ema.weights()["weight"].item() == pytest.approx(1.0)


def test_mean_of_the_last_validations_by_hand() -> None:
    """Of 2: the oldest is forgotten."""
    model, mean = single(0.0), CheckpointAverage(2)
    seen = []
    for step, value in ((5, 1.0), (10, 3.0), (15, 7.0)):
        nn.init.constant_(model.weight, value)
        mean.before_validation(model, step)
        seen.append(mean.weights()["weight"].item())
    assert seen == [1.0, 2.0, 5.0]


def test_toward_the_start_by_hand() -> None:
    """A quarter of 8 and three quarters of 4; the first weights are those before training."""
    model = single(8.0)
    mixed = TowardStart(0.25, model)
    assert mixed.weights()["weight"].item() == 8.0
    nn.init.constant_(model.weight, 4.0)
    mixed.after_step(model, 1)
    assert mixed.weights()["weight"].item() == 5.0
    with averaged(mixed, model):
        assert model.weight.item() == 5.0
    assert model.weight.item() == 4.0


def test_training_goes_on_from_its_own_weights() -> None:
    """The average is only visited, even when validation fails."""
    model, ema = single(1.0), ExponentialAverage(0.5)
    ema.after_step(model, 100)
    nn.init.constant_(model.weight, 5.0)
    inside = []
    with suppress(KeyboardInterrupt), averaged(ema, model):
        inside.append(model.weight.item())
        raise KeyboardInterrupt
    assert inside == [1.0]
    assert model.weight.item() == 5.0


def test_tied_weights_stay_tied() -> None:
    """One parameter under two names is averaged once."""
    one, other = nn.Linear(3, 3), nn.Linear(3, 3)
    other.weight = one.weight
    model, ema = nn.Sequential(one, other), ExponentialAverage(0.5)
    ema.after_step(model, 100)
    assert set(ema.weights()) == {"0.weight", "0.bias", "1.bias"}
    with averaged(ema, model):
        assert other.weight is one.weight


def test_recipes_choose() -> None:
    """None unless asked for."""
    assert type(average(config(), network())) is Average
    assert isinstance(average(config(ema=0.9), network()), ExponentialAverage)
    assert isinstance(average(config(average=3), network()), CheckpointAverage)
    assert isinstance(average(config(toward_start=0.3), network()), TowardStart)
    with pytest.raises(ValueError, match=r"ema is 0\.9, average 3 and .*: choose one"):
        config(ema=0.9, average=3)
    with pytest.raises(ValueError, match=r"toward_start 0\.3: choose one"):
        config(ema=0.9, toward_start=0.3)


def test_a_mean_of_checkpoints_needs_statistics_of_its_own(tmp_path: Path) -> None:
    """Running means belong to the newest weights: refused before the first step, unless frozen."""
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    task = Plane()
    with pytest.raises(UsageError, match=r"average is 2, .* batch norm \(1\).* train\.ema"):
        run(tmp_path / "mean", task, config(average=2), model=model)
    with pytest.raises(UsageError, match=r"toward_start is 0\.5, .* set it to 0"):
        run(tmp_path / "start", task, config(toward_start=0.5), model=model)
    assert not task.seen
    run(tmp_path / "moving", task, config(ema=0.9), model=model)
    run(tmp_path / "frozen", task, config(average=2, freeze=("0", "1")), model=model)


@pytest.mark.parametrize("how", [{"ema": 0.5}, {"average": 2}, {"toward_start": 0.5}])
def test_kept_and_validated_weights_are_the_averaged_ones(
    how: dict[str, float], tmp_path: Path
) -> None:
    """What is validated is what is kept, and what the model has in the end."""
    kept: list[torch.Tensor] = []
    plain = run(tmp_path / "plain", Plane(), config())
    model = run(
        tmp_path / "averaged",
        Plane(),
        config(**how),
        save_best=lambda model: kept.append(first(model)),
    )
    assert torch.equal(kept[-1], first(model))
    assert not torch.equal(first(model), first(plain))


def test_the_mean_is_of_the_weights_that_were_validated(tmp_path: Path) -> None:
    """Steps 5, 10 and 12 are validated: the mean of 2 is that of two plain runs ending there."""
    ends = [run(tmp_path / str(n), Plane(), config(steps=n, schedule="constant")) for n in (10, 12)]
    mean = run(tmp_path / "mean", Plane(), config(average=2, schedule="constant"))
    torch.testing.assert_close(first(mean), (first(ends[0]) + first(ends[1])) / 2)


@pytest.mark.parametrize("how", [{"ema": 0.9}, {"average": 2}, {"toward_start": 0.3}])
@pytest.mark.parametrize("cut", [5, 9])
def test_resumed_bitwise(how: dict[str, float], cut: int, tmp_path: Path) -> None:
    """The average is part of the state."""
    whole = run(tmp_path / "whole", Plane(), config(**how))
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", Plane(), config(**how), observer=Unplugged(cut))
    other = network()
    nn.init.zeros_(next(other.parameters()))  # what a resumed model begins with does not count
    resumed = run(tmp_path / "cut", Plane(), config(**how), model=other)
    again = run(tmp_path / "cut", Plane(), config(**how))  # finished: nothing is left to do
    for one, two, three in zip(
        whole.parameters(), resumed.parameters(), again.parameters(), strict=True
    ):
        assert torch.equal(one, two)
        assert torch.equal(one, three)


def test_early_stop_keeps_the_best_average(tmp_path: Path) -> None:
    """The average at the best validation is kept, not the one at the end."""
    kept: list[torch.Tensor] = []
    stop = EarlyStop(metric="val_score", patience=1)
    model = run(
        tmp_path,
        Scripted(2.0, 1.0),
        config(ema=0.9, early_stop=stop),
        save_best=lambda model: kept.append(first(model)),
        model=network(),
    )
    assert len(kept) == 1
    assert not torch.equal(kept[0], first(model))
