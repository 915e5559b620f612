"""How long a training takes: measured before its first step, refined while it runs.

A run takes the seconds of its steps, of its validations, and of the measurement at its end, which
counts as one more validation. Loading data is part of a step; checkpoints are, once it runs.

Before the first step a copy of the model makes updates with batches from all over the first epoch,
since their sizes differ; the first two fill caches and do not count. Then a validation is timed.
What writes texts does not end its outputs before it has learned to, so there a part of the
validation data is written with outputs as long as the right ones (`Rehearsal`), and the time
multiplied.

While it runs, the seconds of a step are the mean of all steps so far, as soon as there are as many
as were measured before; those of a validation are those of the last one.
"""

import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import nn

from manyheads.streams import stream
from manyheads.train.device import autocast
from manyheads.train.loop import update
from manyheads.train.optim import optimizer
from manyheads.train.train_config import TrainConfig
from manyheads.train.training_task import Rehearsal, Task

WARM = 2  # updates that do not count
UPDATES = 16  # that do
BUDGET = 10.0  # seconds, after which no more updates are made


@dataclass
class Pace:
    """Seconds of steps and validations of a run."""

    config: TrainConfig
    step: float
    validation: float
    clock: Callable[[], float]
    units: float = 0.0  # tokens or images a second, before the first step
    made: int = 0  # steps that were timed
    spent: float = 0.0
    last: float | None = None  # when the last step or validation ended

    def stepped(self) -> None:
        """Note that a step was made; the first one only starts the clock."""
        now = self.clock()
        if self.last is not None:
            self.made += 1
            self.spent += now - self.last
            if self.made >= UPDATES:
                self.step = self.spent / self.made
        self.last = now

    def validated(self) -> None:
        """Note that a validation has ended, which began after the last step."""
        now = self.clock()
        if self.last is not None:
            self.validation = now - self.last
        self.last = now

    def left(self, step: int) -> float:
        """Return the seconds from behind a step to the end of the run."""
        steps, every = self.config.steps, self.config.validate_every
        validations = steps // every - step // every + (step < steps and steps % every > 0)
        return (steps - step) * self.step + (validations + 1) * self.validation


def rehearsed(model: nn.Module, task: Task[Any], config: TrainConfig, seed: int) -> Pace:
    """Measure updates and a validation; the model and its random streams stay as they are."""
    device = next(model.parameters()).device
    copy = deepcopy(model)
    learner = optimizer(copy, config)
    plan = task.plan(0)
    size, began = config.accumulate, time.monotonic()
    count = min(max(len(plan), config.steps * size), (WARM + UPDATES) * size)
    chosen = np.linspace(0, len(plan) - 1, count, dtype=int)
    batches = task.load(0, [plan[number] for number in chosen])
    seconds: list[float] = []
    units: list[float] = []
    with torch.random.fork_rng():
        torch.manual_seed(stream(seed, "pace"))
        before = time.monotonic()
        while window := list(islice(batches, size)):
            units.append(update(copy, task, window, config, learner, 1, device).units)
            before, last = time.monotonic(), before
            seconds.append(before - last)
            if len(seconds) > WARM and before - began > BUDGET:
                break
    copy.eval()
    with torch.inference_mode(), autocast(device, config.precision):
        before = time.monotonic()
        if isinstance(task, Rehearsal):
            validation = task.rehearse(copy)
        else:
            task.evaluate(copy)
            validation = time.monotonic() - before
    timed = seconds[WARM:] or seconds
    rate = sum(units[-len(timed) :]) / sum(timed)
    return Pace(config, float(np.mean(timed)), validation, time.monotonic, units=rate)


def duration(seconds: float) -> str:
    """Write a time for people, its smaller part cut off.

    Examples:
        >>> duration(8), duration(100), duration(4000), duration(200000)
        ('8 s', '1 min 40 s', '1 h 6 min', '2 d 7 h')
    """
    whole = round(seconds)
    units = (86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")
    for size, name, part, smaller in units:
        if whole >= size:
            return f"{whole // size} {name} {whole % size // part} {smaller}"
    return f"{whole} s"
