"""The training loop: one flat function."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import nn

from manyheads.errors import LOG, InterruptedRunError, NonFiniteLossError, TrainingError
from manyheads.streams import stream
from manyheads.train import average as averages
from manyheads.train import checkpoint
from manyheads.train.batch_loading import load_batches
from manyheads.train.checkpoint import Progress
from manyheads.train.device import autocast, memory_errors
from manyheads.train.distribute import RankTask, summed, unwrapped, whole
from manyheads.train.early_stop import improved, still_stopped
from manyheads.train.history import NON_FINITE
from manyheads.train.interrupt import stop_signals
from manyheads.train.layer_groups import freeze, set_frozen_eval
from manyheads.train.log import MetricsLog, NoLog
from manyheads.train.meter import Meter
from manyheads.train.model_wrapping import average_statistics, gathered, gradient_sync
from manyheads.train.optim import SCALE, Optimizer
from manyheads.train.optim import optimizer as build_optimizer
from manyheads.train.ranks import agreed, exchange, lost_ranks, on_first, rank_and_world
from manyheads.train.schedule import learning_rate
from manyheads.train.train_config import TrainConfig
from manyheads.train.training_task import B, OwnBackward, Task

TOO_LARGE = (
    "Make batches smaller (train.batch_size or train.max_tokens) and raise train.accumulate by as "
    "much, or lower the sizes in [model]; the state that was saved last can be resumed."
)


class Observer(Protocol):
    """Receives the events of a run, such as a progress bar."""

    def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
        """Called after every step.

        `line` is the newest line of the metrics log, with the loss of this step as "step_loss".
        """

    def validated(self, step: int, metrics: dict[str, float]) -> None:
        """Called after every validation."""


class _Watch:
    """Tells the observer what happens; if it fails, the loop saves and stops."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def tell(self, call: Callable[..., None], *event: Any) -> None:
        """Call the observer."""
        try:
            call(*event)
        except Exception as error:
            self.error = self.error or error

    @property
    def reason(self) -> str:
        """Why the loop stops, to follow "Stopped"."""
        if self.error is None:
            return ""
        return f", since its progress could not be shown ({type(self.error).__name__})"


@lost_ranks()
def fit(
    model: nn.Module,
    task: Task[B],
    config: TrainConfig,
    folder: Path,
    *,
    seed: int,
    environment: dict[str, str],
    save_best: Callable[[nn.Module], None],
    observer: Observer,
) -> Progress:
    """Train until the last step or an early stop, going on from the newest checkpoint in folder.

    Afterwards the model has the weights to use: the last ones, or their average. Several ranks make
    the same updates as one (see `distribute.py`), and have one folder, in which only rank 0 writes;
    it alone validates, while the others wait.

    Args:
        model: on the device to train on, with its initial weights; wrapped, if there are several
            ranks, or for other reasons (see `parallel.py`).
        task: what to learn.
        config: how.
        folder: the run folder; state/ and metrics.jsonl are written here.
        seed: of all named random streams.
        environment: what bitwise reproduction depends on (versions, threads); a change warns.
        save_best: called on rank 0 with the model whenever its weights are the ones to use.
        observer: called with the progress; on rank 0 only.

    Raises:
        InterruptedRunError: Ctrl-C or SIGTERM, or the observer failed; the state is saved.
        NonFiniteLossError: the loss is infinite or not a number; nothing was updated with it.
        OutOfMemoryError: a batch is too large.
        TrainingError: another rank is gone.
    """
    device = next(model.parameters()).device
    rank, world = rank_and_world()
    part: Task[Any] = RankTask(task, rank, world) if world > 1 else task
    plain = unwrapped(model)  # only `task.loss` calls what is around it
    freeze(plain, config.freeze)
    optimizer = build_optimizer(plain, config)
    average = averages.average(config, plain)
    progress = checkpoint.load(folder / "state", plain, optimizer, average) or Progress()
    if rank == 0:
        _compare(progress.conditions, environment)
    progress.conditions = environment
    progress.stopped = progress.stopped and still_stopped(progress, config.early_stop)
    first_step, events = progress.step, folder / "events" if config.tensorboard else None
    log: MetricsLog | NoLog = NoLog()
    with agreed():
        if rank == 0:
            log = MetricsLog(folder / "metrics.jsonl", first_step=first_step, events=events)
    saver = checkpoint.saver()
    meter = Meter(task.unit, progress.seconds, progress.unlogged)
    line: dict[str, float] = {}
    watch = _Watch()

    def judge(step: int) -> None:
        with averages.averaged(average, plain), gathered(plain):
            metrics = on_first(partial(_validate, plain, task, config, device))
            log.write({"step": step, "epoch": progress.epoch} | metrics)
            if rank == 0:
                watch.tell(observer.validated, step, metrics)
            if improved(progress, metrics, config.early_stop):
                on_first(partial(save_best, plain))

    with stop_signals() as stop_asked, closing(log):
        if config.validate_first and progress.step == 0:
            judge(0)
        while progress.step < config.steps and not progress.stopped:
            plan = part.plan(progress.epoch)
            if not plan:
                raise TrainingError("There is nothing to train on: the training data is empty.")
            rest = plan[progress.index :]
            batches = load_batches(part, progress.epoch, rest, config.workers)
            for window in _windows(batches, config.accumulate):
                step = progress.step + 1
                # Reseeding by step makes dropout a pure function of (seed, step): nothing to store.
                # Rank 0 draws what one process alone does, the others something else.
                torch.manual_seed(stream(seed, "dropout", step, *((rank,) if rank else ())))
                asked = stop_asked() or watch.error is not None
                try:
                    with memory_errors(TOO_LARGE):
                        made = update(model, part, window, config, optimizer, step, device, asked)
                except NonFiniteLossError:
                    log.write({"step": step, "epoch": progress.epoch, NON_FINITE: 1})
                    raise
                average.after_step(plain, step)
                progress.step = step
                progress.index += len(window)
                meter.add(made.loss, made.logs, made.units)
                if step % config.log_every == 0 or step == config.steps:
                    line = meter.line(step, progress.epoch, learning_rate(step, config))
                    log.write(line)
                if rank == 0:
                    now = {**line, "step_loss": made.loss}
                    watch.tell(observer.progress, step, config.steps, now)
                if step % config.validate_every == 0 or step == config.steps:
                    average_statistics(plain)
                    average.before_validation(plain, step)
                    judge(step)
                progress.seconds, progress.unlogged = meter.skip(), meter.sums
                finished = progress.stopped or step == config.steps
                # Several ranks stop together: behind the update in which all heard of it.
                interrupted = made.asked
                if world == 1:
                    interrupted = stop_asked() or watch.error is not None
                if step % config.save_every == 0 or finished or interrupted:
                    average_statistics(plain)
                    saver.save(folder / "state", plain, optimizer, average, progress)
                    meter.skip()
                if finished:
                    break
                if interrupted:
                    saver.finish()
                    raise InterruptedRunError(
                        f"Stopped after step {step} of {config.steps}{watch.reason}."
                    ) from watch.error
            else:
                progress.epoch += 1
                progress.index = 0
        saver.finish()
    averages.apply(average, plain)
    return progress


class Update(NamedTuple):
    """What an update reports, of all ranks together."""

    loss: float  # mean
    logs: dict[str, float]  # further means
    units: int
    asked: bool  # whether a rank was asked to stop


def update(
    model: nn.Module,
    task: Task[B],
    window: Sequence[B],
    config: TrainConfig,
    optimizer: Optimizer,
    step: int,
    device: torch.device,
    asked: bool = False,
) -> Update:
    """Make one optimizer update from a window of batches.

    Several ranks do everything together, also where one has found an error or was asked to stop.
    """
    alone = rank_and_world()[1] == 1
    model.train()
    if config.freeze:
        set_frozen_eval(model)
    optimizer.zero_grad(set_to_none=True)
    total, weight = 0.0, 0.0
    logs: dict[str, float] = {}
    wrong: list[str] = []
    for number, batch in enumerate(window, 1):
        with gradient_sync(model, now=number == len(window)):
            with autocast(device, config.precision):
                if isinstance(task, OwnBackward):
                    loss = task.backward(model, batch)
                else:
                    loss = task.loss(model, batch)
            value = loss.sum.item()
            if not math.isfinite(value):
                wrong.append(
                    f"The loss is {value} at step {step}, in the batch of {task.describe(batch)}. "
                    "Nothing was updated with it. Look at these examples, lower "
                    "train.learning_rate, or set train.clip, and train anew with another `out`."
                )
                if alone:
                    raise NonFiniteLossError(wrong[0])
            if loss.sum.requires_grad:
                loss.sum.backward()
        total += value
        weight += loss.weight
        for name, part in loss.logs.items():
            logs[name] = logs.get(name, 0.0) + part
    units = sum(batch.units for batch in window)
    given = [total, weight, units, asked, *logs.values()]
    total, weight, all_units, stop, *sums = summed(given, device)
    if not (alone or math.isfinite(total)):
        raise NonFiniteLossError(next(each for found in exchange(wrong) for each in found))
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    # Over the whole window and all ranks: the mean of one big batch. Ranks average their gradients.
    torch._foreach_div_(gradients, weight / rank_and_world()[1])
    norm = whole(nn.utils.clip_grad_norm_(model.parameters(), config.clip or math.inf))
    if not math.isfinite(norm.item()):
        examples = ", ".join(each for found in exchange(_named(task, window)) for each in found)
        raise NonFiniteLossError(
            f"The gradient is {norm.item()} at step {step} (the loss is {total / weight:.4g}), in "
            f"the batch of {examples}. Nothing was updated with it. "
            "Lower train.learning_rate and train anew with another `out`."
        )
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(step, config) * group[SCALE]
    optimizer.step()
    means = {name: part / weight for name, part in zip(logs, sums, strict=True)}
    return Update(total / weight, means, int(all_units), stop > 0)


def _named(task: Task[B], window: Sequence[B]) -> list[str]:
    return [task.describe(batch) for batch in window]


def _validate(
    model: nn.Module, task: Task[B], config: TrainConfig, device: torch.device
) -> dict[str, float]:
    model.eval()
    limits = memory_errors(TOO_LARGE)
    with limits, torch.inference_mode(), autocast(device, config.precision):
        metrics = task.evaluate(model)
    return {f"val_{name}": value for name, value in metrics.items()}


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
        LOG.warning(
            "Resuming under other conditions, so the result will not be bitwise the same as "
            "without the interruption: %s.",
            "; ".join(changed),
        )
