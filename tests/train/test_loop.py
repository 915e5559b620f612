"""The training loop, watched on a task small enough to know by heart."""

import json
import os
import signal
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from manyheads.errors import InterruptedRunError, NonFiniteLossError, TrainingError
from manyheads.streams import stream
from manyheads.train import checkpoint, interrupt
from manyheads.train.history import NON_FINITE
from manyheads.train.schedule import learning_rate
from manyheads.train.train_config import EarlyStop
from tests.made import Silent
from tests.remarks import collected, remarks
from tests.train.toy import Plane, Scripted, Unplugged, config, network, run


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def timeless(folder: Path) -> list[dict[str, Any]]:
    """The metrics without what depends on the clock."""
    clock = {"seconds", "points_per_second"}
    return [{k: v for k, v in line.items() if k not in clock} for line in metrics(folder)]


def same(one: nn.Module, other: nn.Module) -> bool:
    """Bitwise."""
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


# --- What a step is -----------------------------------------------------------------------------


def test_accumulation_equals_a_big_batch(tmp_path: Path) -> None:
    """Two batches of 4 an update = one batch of 8, although their weights differ."""
    without = network(dropout=0)
    start = [parameter.detach().clone() for parameter in without.parameters()]
    how = config(clip=0.0)
    big = run(tmp_path / "big", Plane(points=24, batch_size=8), how, model=without)
    halves = run(
        tmp_path / "halves",
        Plane(points=24, batch_size=4),
        replace(how, accumulate=2),
        model=network(dropout=0),
    )
    for one, other, before in zip(big.parameters(), halves.parameters(), start, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(one.grad, other.grad, atol=1e-5, rtol=1e-4)
        assert not torch.equal(one, before)
    lines = zip(timeless(tmp_path / "big"), timeless(tmp_path / "halves"), strict=True)
    for one_line, other_line in lines:
        assert one_line == pytest.approx(other_line, rel=1e-5)


def test_the_last_window_of_an_epoch_may_be_smaller(tmp_path: Path) -> None:
    """Five batches, two an update: 2 + 2 + 1, then a new epoch; steps count updates."""
    task = Plane()
    run(tmp_path, task, config(steps=3, accumulate=2))
    assert [len(seen) for seen in task.seen] == [4] * 5
    assert sorted(chain(*task.seen)) == list(range(20))


def test_every_epoch_sees_every_example_once(tmp_path: Path) -> None:
    """Ten steps are two epochs, each in its own order."""
    task = Plane()
    run(tmp_path, task, config(steps=10))
    epochs = [list(chain(*task.seen[:5])), list(chain(*task.seen[5:]))]
    assert [sorted(epoch) for epoch in epochs] == [list(range(20))] * 2
    assert epochs[0] != epochs[1]


@pytest.mark.parametrize("clip", [0.01, 0.0])
def test_clipping(tmp_path: Path, clip: float) -> None:
    """No update is made with a longer gradient; 0 leaves gradients alone."""
    model = run(tmp_path, Plane(), config(steps=1, clip=clip))
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    norm = torch.linalg.vector_norm(torch.cat([gradient.flatten() for gradient in gradients]))
    if clip:
        assert norm.item() == pytest.approx(clip, rel=1e-3)
    else:
        assert norm.item() > 0.1


def test_the_learning_rate_of_a_step_is_the_schedules(tmp_path: Path) -> None:
    """A rate of 0 at the very end of a cosine changes nothing."""
    how = config(steps=8, warmup=0, save_every=7)
    run(tmp_path / "eight", Plane(), how)
    before, after = (
        load_file(folder / "model.safetensors")
        for folder in checkpoint.checkpoints(tmp_path / "eight" / "state")
    )
    assert learning_rate(8, how) == 0
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_bf16_computes_in_bf16_and_keeps_fp32_weights(tmp_path: Path) -> None:
    """By the recipe; the loss is near that of fp32, not equal to it."""
    run(tmp_path / "fp32", Plane(), config(log_every=1))
    model = run(tmp_path / "bf16", Plane(), config(log_every=1, precision="bf16"))
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    exact, rounded = metrics(tmp_path / "fp32")[0]["loss"], metrics(tmp_path / "bf16")[0]["loss"]
    assert exact != rounded
    assert exact == pytest.approx(rounded, rel=0.05)


def test_nothing_to_train_on(tmp_path: Path) -> None:
    """An endless loop over nothing would look like training."""
    with pytest.raises(TrainingError, match="training data is empty"):
        run(tmp_path, Plane(points=0), config())


def test_every_step_drops_other_values(tmp_path: Path) -> None:
    """The mask is a function of the seed and the step, so that it can be drawn again."""
    model = network(dropout=0.5)
    masks: list[torch.Tensor] = []

    def note(part: nn.Module, given: Any, dropped: torch.Tensor) -> None:
        if part.training:
            masks.append(dropped != 0)

    model[2].register_forward_hook(note)
    run(tmp_path, Plane(), config(steps=4), model=model)
    for step, mask in enumerate(masks, start=1):
        torch.manual_seed(stream(1, "dropout", step))
        assert torch.equal(mask, nn.functional.dropout(torch.ones(4, 8)) != 0)
    assert len({tuple(mask.flatten().tolist()) for mask in masks}) == 4


@pytest.mark.parametrize("more", [{}, {"ema": 0.9}, {"average": 2}, {"layer_decay": 0.5}])
def test_training_computes_where_the_model_is(tmp_path: Path, more: dict[str, Any]) -> None:
    """Tensors that are made without saying where lie on a device without values here."""
    model, task = network(), Plane()
    with torch.device("meta"):
        run(tmp_path, task, config(**more), model=model)
    assert same(model, run(tmp_path / "again", Plane(), config(**more)))


# --- What is written ----------------------------------------------------------------------------


def test_metrics(tmp_path: Path) -> None:
    """One line a log step and one a validation, the last step always; nothing else."""
    how = config(log_every=5, validate_every=5)
    run(tmp_path, Plane(), how)
    lines = metrics(tmp_path)
    assert [(line["step"], line["epoch"]) for line in lines] == [
        (5, 0),
        (5, 0),
        (10, 1),
        (10, 1),
        (12, 2),
        (12, 2),
    ]
    logged = {"step", "epoch", "seconds", "loss", "distance", "learning_rate", "points_per_second"}
    assert [set(line) for line in lines] == [logged, {"step", "epoch", "val_loss"}] * 3
    rates = [line["learning_rate"] for line in lines[::2]]
    assert rates == [learning_rate(step, how) for step in (5, 10, 12)]


def test_logged_losses_are_means_over_weight(tmp_path: Path) -> None:
    """The first step's line, computed by hand: sums over the batch / its weight."""
    task, model = Plane(), network(dropout=0)
    (batch,) = task.load(0, task.plan(0)[:1])
    with torch.no_grad():
        distance = (model(batch.x)[:, 0] - batch.y).abs()
    run(tmp_path, task, config(steps=1), model=model)
    line = metrics(tmp_path)[0]
    weights = batch.weights / batch.weights.sum()
    assert line["loss"] == pytest.approx((weights * distance**2).sum().item())
    assert line["distance"] == pytest.approx((weights * distance).sum().item())


def test_it_learns(tmp_path: Path) -> None:
    """Whatever else is right: the loss falls."""
    how = config(steps=100, learning_rate=0.03, validate_every=50, save_every=100)
    model = network(dropout=0)
    before = Plane().evaluate(model)["loss"]
    run(tmp_path, Plane(), how, model=model)
    losses = [line["val_loss"] for line in metrics(tmp_path) if "val_loss" in line]
    assert losses[-1] < losses[0] < before / 4


def test_dropout_is_on_in_training_and_off_in_validation(tmp_path: Path) -> None:
    """And on again after a validation."""
    modes = []

    class Watched(Plane):
        def loss(self, model: nn.Module, batch: Any) -> Any:
            modes.append(("train", model.training))
            return super().loss(model, batch)

        def evaluate(self, model: nn.Module) -> dict[str, float]:
            modes.append(("validate", model.training))
            return super().evaluate(model)

    run(tmp_path, Watched(), config(steps=4, validate_every=2))
    assert modes == [("train", True), ("train", True), ("validate", False)] * 2


# --- Early stopping -----------------------------------------------------------------------------


def kept_at(folder: Path, task: Plane, **changes: Any) -> list[int]:
    """Validate at every step; return the number of the validations whose weights were kept."""
    steps, kept = [0], []

    class Counting(Silent):
        def validated(self, step: int, metrics: dict[str, float]) -> None:
            steps.append(step)

    run(
        folder,
        task,
        config(validate_every=1, **changes),
        save_best=lambda model: kept.append(len(steps) - 1),
        observer=Counting(),
    )
    return kept


def test_without_early_stopping_the_last_weights_are_kept(tmp_path: Path) -> None:
    """Every validation refreshes the model folder, so there is something to use early."""
    assert kept_at(tmp_path, Plane(), steps=3) == [1, 2, 3]


def test_early_stopping_keeps_the_best(tmp_path: Path) -> None:
    """Kept when better; stopped after two validations that are not; equal is not better."""
    task = Scripted(1.0, 3.0, 2.0, 4.0, 4.0, 3.0, 9.0)
    stop = EarlyStop(metric="val_score", patience=2)
    assert kept_at(tmp_path, task, early_stop=stop) == [1, 2, 4]
    assert task.scores == [9.0]  # never asked for


def test_a_loss_is_better_when_smaller(tmp_path: Path) -> None:
    """Any metric whose name ends in "loss"."""

    class Losses(Scripted):
        def evaluate(self, model: nn.Module) -> dict[str, float]:
            return {"loss": self.scores.pop(0)}

    stop = EarlyStop(metric="val_loss", patience=1)
    assert kept_at(tmp_path, Losses(3.0, 2.0, 2.5, 1.0), early_stop=stop) == [1, 2]


@pytest.mark.parametrize("name", ["loss", "score"])
def test_any_number_is_better_than_none(tmp_path: Path, name: str) -> None:
    """A first validation that is not a number does not stay the best; a later one is not."""

    class Measured(Scripted):
        def evaluate(self, model: nn.Module) -> dict[str, float]:
            return {name: self.scores.pop(0)}

    values = [2.0, 1.0] if name == "loss" else [1.0, 2.0]
    task = Measured(float("nan"), *values, float("nan"), 9.0)
    stop = EarlyStop(metric=f"val_{name}", patience=1)
    assert kept_at(tmp_path, task, early_stop=stop) == [1, 2, 3]
    assert task.scores == [9.0]  # never asked for


def test_early_stopping_by_a_metric_that_is_not_measured(tmp_path: Path) -> None:
    """Says what was asked for and what there is."""
    stop = EarlyStop(metric="val_bleu")
    with pytest.raises(TrainingError, match=r"'val_bleu'.*measures val_loss"):
        run(tmp_path, Plane(), config(early_stop=stop))


def test_a_stopped_run_stays_stopped(tmp_path: Path) -> None:
    """Resuming it trains no further."""
    stop = EarlyStop(metric="val_score", patience=1)
    how = config(validate_every=2, save_every=1, early_stop=stop)
    stopped = run(tmp_path, Scripted(2.0, 1.0), how)
    again = run(tmp_path, Scripted(), how)  # a validation would fail
    assert same(stopped, again)


# --- Interruption -------------------------------------------------------------------------------


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("step", range(1, 13))
def test_a_run_cut_off_at_any_step_ends_the_same(
    tmp_path: Path, step: int, accumulate: int
) -> None:
    """Same batches, same dropout, same metrics, same weights bit by bit, each line once."""
    how = config(accumulate=accumulate, log_every=3)  # a checkpoint every fourth step
    whole = run(tmp_path / "whole", Plane(), how)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", Plane(), how, observer=Unplugged(step))
    assert same(run(tmp_path / "cut", Plane(), how), whole)
    assert timeless(tmp_path / "cut") == timeless(tmp_path / "whole")


def test_resuming_does_not_repeat_batches(tmp_path: Path) -> None:
    """A checkpoint after step 4 of 5 batches an epoch: the resumed run begins with the fifth."""
    whole, rest = Plane(), Plane()
    run(tmp_path / "whole", whole, config())
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", Plane(), config(), observer=Unplugged(6))
    run(tmp_path / "cut", rest, config())
    assert rest.seen == whole.seen[4:]


def test_half_a_line_of_metrics(tmp_path: Path) -> None:
    """A line cut off by the power cut is gone."""
    run(tmp_path / "whole", Plane(), config())
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", Plane(), config(), observer=Unplugged(7))
    with (tmp_path / "cut" / "metrics.jsonl").open("a") as file:
        file.write('{"step": 8, "los')
    run(tmp_path / "cut", Plane(), config())
    assert timeless(tmp_path / "cut") == timeless(tmp_path / "whole")


def test_time_goes_on(tmp_path: Path) -> None:
    """`seconds` counts the whole run: earlier parts too."""
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Plane(), config(), observer=Unplugged(6))
    folder = checkpoint.checkpoints(tmp_path / "state")[-1]
    document = json.loads((folder / "progress.json").read_text())
    document["progress"]["seconds"] = 1000.0
    (folder / "progress.json").write_text(json.dumps(document))
    run(tmp_path, Plane(), config())
    assert metrics(tmp_path)[-2]["seconds"] > 1000


class Signals(Silent):
    """Sends this process signals at a step, as a user at the keyboard does."""

    def __init__(self, step: int, number: int, *, times: int = 1) -> None:
        self.step, self.number, self.times = step, number, times

    def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
        if step == self.step:
            for _ in range(self.times):
                os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_stops(tmp_path: Path, number: signal.Signals) -> None:
    """After the step: a checkpoint is there, though none was due, and going on loses nothing."""
    whole = run(tmp_path / "whole", Plane(), config())
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(InterruptedRunError, match=r"after step 6 of 12\.$") as caught:
        run(tmp_path / "cut", Plane(), config(), observer=Signals(6, number))
    assert caught.value.exit_code == 130
    assert checkpoint.checkpoints(tmp_path / "cut" / "state")[-1].name == "step-000000006"
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert same(run(tmp_path / "cut", Plane(), config()), whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_two_signals_at_once_are_one(tmp_path: Path, number: signal.Signals) -> None:
    """Pressed twice, or passed on by two programs: the state is saved all the same."""
    with pytest.raises(InterruptedRunError, match="after step 6 of 12"):
        run(tmp_path, Plane(), config(), observer=Signals(6, number, times=3))
    assert checkpoint.checkpoints(tmp_path / "state")[-1].name == "step-000000006"


def test_a_terminal_that_is_closed_saves_and_stops(tmp_path: Path) -> None:
    """Unless the run was started to outlive it, as by nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with pytest.raises(InterruptedRunError, match="after step 6 of 12"):
            run(tmp_path / "out", Plane(), config(), observer=Signals(6, signal.SIGHUP))
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        run(tmp_path / "nohup", Plane(), config(), observer=Signals(6, signal.SIGHUP))
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("error", [BrokenPipeError(), KeyError("mine")])
def test_an_observer_that_fails_loses_nothing(tmp_path: Path, error: Exception) -> None:
    """Such as a progress bar whose pipe is closed: the state is saved, and going on is the same."""

    class Failing(Silent):
        def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
            if step == 6:
                raise error

    whole = run(tmp_path / "whole", Plane(), config())
    message = f"after step 6 of 12, since its progress .*{type(error).__name__}"
    with pytest.raises(InterruptedRunError, match=message) as caught:
        run(tmp_path / "cut", Plane(), config(), observer=Failing())
    assert caught.value.__cause__ is error
    assert same(run(tmp_path / "cut", Plane(), config()), whole)


def test_a_second_signal_insists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who cannot wait for the step to end presses Ctrl-C again."""
    monkeypatch.setattr(interrupt, "SECONDS", 0)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Plane(), config(), observer=Signals(6, signal.SIGINT, times=2))


def test_other_conditions_warn(tmp_path: Path) -> None:
    """Bitwise equality is promised for one machine, version and thread count: say what changed."""
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Plane(), config(), observer=Unplugged(6))
    with remarks(r"not be bitwise the same.*threads was 1, is 2"):
        run(tmp_path, Plane(), config(), environment={"threads": "2"})


def test_the_same_conditions_do_not_warn(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Plane(), config(), observer=Unplugged(6))
    with collected() as said:
        run(tmp_path, Plane(), config())
    assert said == []


# --- Losses that are not numbers ----------------------------------------------------------------


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_loss_that_is_no_number_stops_and_names_the_batch(tmp_path: Path, value: float) -> None:
    """Step, value and examples; what was saved and logged before is whole, and can go on."""
    sick = Plane()
    chosen = sick.plan(1)[2]  # the third batch of the second epoch: step 8
    sick.x[chosen[0], 0] = value
    # The example was seen in the first epoch too: start after it.
    healthy = Plane()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, healthy, config(save_every=1), observer=Unplugged(6))
    before = [line for line in metrics(tmp_path) if line["step"] <= 5]
    with pytest.raises(NonFiniteLossError) as caught:
        run(tmp_path, sick, config(save_every=2))
    message = str(caught.value)
    assert "at step 8" in message
    assert f"points {sorted(chosen.tolist())}" in message
    assert "Nothing was updated" in message
    assert "another `out`" in message
    assert metrics(tmp_path)[: len(before)] == before
    assert metrics(tmp_path)[-1] == {"step": 8, "epoch": 1, NON_FINITE: 1}  # for the doctor
    assert checkpoint.checkpoints(tmp_path / "state")[-1].name == "step-000000006"
    assert same(run(tmp_path, Plane(), config()), run(tmp_path / "whole", Plane(), config()))


def test_a_gradient_that_is_no_number_stops_too(tmp_path: Path) -> None:
    """sqrt has a loss of 0 and a slope of infinity at 0."""

    class Root(Plane):
        def loss(self, model: nn.Module, batch: Any) -> Any:
            found = super().loss(model, batch)
            return found._replace(sum=(found.sum * 0).sqrt())

    with pytest.raises(NonFiniteLossError, match=r"gradient is nan at step 1.*points \["):
        run(tmp_path, Root(), config())
    assert not checkpoint.checkpoints(tmp_path / "state")


def test_tensorboard_gets_the_same_numbers(tmp_path: Path) -> None:
    """Read back from the event file: every line of metrics.jsonl, value by value."""
    proto = pytest.importorskip("tensorboardX.proto.event_pb2")
    run(tmp_path, Plane(), config(tensorboard=True))
    (file,) = (tmp_path / "events").iterdir()
    data, found = file.read_bytes(), {}
    while data:  # a record: its length in 8 bytes, 4 of checksum, the event, 4 of checksum
        length = int.from_bytes(data[:8], "little")
        event = proto.Event.FromString(data[12 : 12 + length])
        data = data[16 + length :]
        for value in event.summary.value:
            found[event.step, value.tag] = value.simple_value
    lines = metrics(tmp_path)
    written = {
        (line["step"], name): value
        for line in lines
        for name, value in line.items()
        if name != "step"
    }
    assert found.keys() == written.keys()
    assert found == pytest.approx(written)
