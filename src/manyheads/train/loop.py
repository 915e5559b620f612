"""The training loop: one flat function."""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Protocol

import torch
from torch import nn

from manyheads.errors import InterruptedRunError, NonFiniteLossError, TrainingError
from manyheads.streams import stream
from manyheads.train import average as averages
from manyheads.train import checkpoint
from manyheads.train.checkpoint import Progress
from manyheads.train.config import TrainConfig
from manyheads.train.depth import freeze, rest
from manyheads.train.device import autocast
from manyheads.train.history import NON_FINITE
from manyheads.train.interrupt import stop_signals
from manyheads.train.log import MetricsLog
from manyheads.train.meter import Meter
from manyheads.train.optim import SCALE, Optimizer
from manyheads.train.optim import optimizer as build_optimizer
from manyheads.train.schedule import learning_rate
from manyheads.train.task import B, Task, lower_is_better


class Observer(Protocol):
    """Whoever watches a run: a progress bar, a page, nobody."""

    def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
        """Hear of every step; `line` is the newest line of the metrics log."""

    def validated(self, step: int, metrics: dict[str, float]) -> None:
        """Hear of every validation."""


def fit(
    model: nn.Module,
    task: Task[B],
    config: TrainConfig,
    folder: Path,
    *,
    seed: int,
    conditions: dict[str, str],
    keep: Callable[[nn.Module], None],
    observer: Observer,
) -> Progress:
    """Train until the last step or an early stop, going on from the newest checkpoint in folder.

    Afterwards the model has the weights to use: the last ones, or their average.

    Args:
        model: on the device to train on, with its initial weights.
        task: what to learn.
        config: how.
        folder: the run folder; state/ and metrics.jsonl are written here.
        seed: of all named random streams.
        conditions: what bitwise reproduction depends on (versions, threads); a change is warned of.
        keep: called with the model whenever its weights are the ones to use.
        observer: hears of progress.

    Raises:
        InterruptedRunError: Ctrl-C or SIGTERM; the state is saved.
        NonFiniteLossError: the loss is infinite or not a number; nothing was updated with it.
    """
    device = next(model.parameters()).device
    freeze(model, config.freeze)
    optimizer = build_optimizer(model, config)
    average = averages.average(config, model)
    progress = checkpoint.load(folder / "state", model, optimizer, average) or Progress()
    _compare(progress.conditions, conditions)
    progress.conditions = conditions
    log = MetricsLog(
        folder / "metrics.jsonl",
        first_step=progress.step,
        events=folder / "events" if config.tensorboard else None,
    )
    meter = Meter(task.unit, progress.seconds)
    line: dict[str, float] = {}
    with stop_signals() as stop_asked, closing(log):
        while progress.step < config.steps and not progress.stopped:
            plan = task.plan(progress.epoch)
            if not plan:
                raise TrainingError("There is nothing to train on: the training data is empty.")
            batches = task.load(progress.epoch, plan[progress.index :])
            for window in _windows(batches, config.accumulate):
                step = progress.step + 1
                # Reseeding by step makes dropout a pure function of (seed, step): nothing to store.
                torch.manual_seed(stream(seed, "dropout", step))
                try:
                    loss, logs = update(model, task, window, config, optimizer, step, device)
                except NonFiniteLossError:
                    log.write({"step": step, "epoch": progress.epoch, NON_FINITE: 1})
                    raise
                average.after_step(model, step)
                progress.step = step
                progress.index += len(window)
                meter.add(loss, logs, sum(batch.units for batch in window))
                if step % config.log_every == 0 or step == config.steps:
                    line = meter.line(step, progress.epoch, learning_rate(step, config))
                    log.write(line)
                observer.progress(step, config.steps, line)
                if step % config.validate_every == 0 or step == config.steps:
                    average.before_validation(model, step)
                    with averages.averaged(average, model):
                        metrics = _validate(model, task, config, device)
                        log.write({"step": step, "epoch": progress.epoch} | metrics)
                        observer.validated(step, metrics)
                        if _improved(progress, metrics, config):
                            keep(model)
                progress.seconds = meter.skip()
                finished = progress.stopped or step == config.steps
                interrupted = stop_asked()
                if step % config.save_every == 0 or finished or interrupted:
                    checkpoint.save(folder / "state", model, optimizer, average, progress)
                    meter.skip()
                if finished:
                    break
                if interrupted:
                    raise InterruptedRunError(f"Stopped after step {step} of {config.steps}.")
            else:
                progress.epoch += 1
                progress.index = 0
    averages.apply(average, model)
    return progress


def update(
    model: nn.Module,
    task: Task[B],
    window: Sequence[B],
    config: TrainConfig,
    optimizer: Optimizer,
    step: int,
    device: torch.device,
) -> tuple[float, dict[str, float]]:
    """Make one optimizer update from a window of batches; return mean loss and further means."""
    model.train()
    if config.freeze:
        rest(model)
    optimizer.zero_grad(set_to_none=True)
    total, weight = 0.0, 0.0
    logs: dict[str, float] = {}
    for batch in window:
        with autocast(device, config.precision):
            loss = task.loss(model, batch)
        value = loss.sum.item()
        if not math.isfinite(value):
            raise NonFiniteLossError(
                f"The loss is {value} at step {step}, in the batch of {task.describe(batch)}. "
                "Nothing was updated with it. Look at these examples, lower train.learning_rate, "
                "or set train.clip, and train anew with --out."
            )
        loss.sum.backward()
        total += value
        weight += loss.weight
        for name, part in loss.logs.items():
            logs[name] = logs.get(name, 0.0) + part
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    torch._foreach_div_(gradients, weight)  # over the whole window: the mean of one big batch
    norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip or math.inf)
    if not math.isfinite(norm.item()):
        raise NonFiniteLossError(
            f"The gradient is {norm.item()} at step {step} (the loss is {total / weight:.4g}), in "
            f"the batch of {', '.join(map(task.describe, window))}. Nothing was updated with it. "
            "Lower train.learning_rate and train anew with --out."
        )
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(step, config) * group[SCALE]
    optimizer.step()
    return total / weight, {name: part / weight for name, part in logs.items()}


def _validate(
    model: nn.Module, task: Task[B], config: TrainConfig, device: torch.device
) -> dict[str, float]:
    model.eval()
    with torch.inference_mode(), autocast(device, config.precision):
        metrics = task.evaluate(model)
    return {f"val_{name}": value for name, value in metrics.items()}


def _improved(progress: Progress, metrics: dict[str, float], config: TrainConfig) -> bool:
    """Note a validation; say whether the weights are now the ones to keep."""
    if config.early_stop is None:
        return True  # without it, the last weights are the ones to keep
    name = config.early_stop.metric
    if name not in metrics:
        raise TrainingError(
            f"train.early_stop.metric is {name!r}, but validation measures {', '.join(metrics)}."
        )
    value = metrics[name]
    better = progress.best is None or (
        value < progress.best if lower_is_better(name) else value > progress.best
    )
    if better:
        progress.best = value if math.isfinite(value) else None  # which any number beats
    progress.stale = 0 if better else progress.stale + 1
    progress.stopped = progress.stale >= config.early_stop.patience
    return better


def _windows(batches: Iterator[B], size: int) -> Iterator[list[B]]:
    """Group batches by the number an update takes; the last group of an epoch may be smaller."""
    while window := list(islice(batches, size)):
        yield window


def _compare(before: dict[str, str], now: dict[str, str]) -> None:
    changed = [
        f"{name} was {before[name]}, is {now.get(name)}"
        for name in before
        if before[name] != now.get(name)
    ]
    if changed:
        warnings.warn(
            "Resuming under other conditions, so the result will not be bitwise the same as "
            f"without the interruption: {'; '.join(changed)}.",
            stacklevel=3,
        )
