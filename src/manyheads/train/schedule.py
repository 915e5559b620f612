"""Learning rates as pure functions of the step, so that a resumed run needs no scheduler state."""

import math
from collections.abc import Callable
from typing import Protocol

from manyheads.train.train_config import ScheduleName, TrainConfig


class Schedule(Protocol):
    """The factor on the peak learning rate at a step, the first step being 1."""

    def __call__(self, step: int, warmup: int, steps: int) -> float:
        """Return a factor between 0 and 1."""


def inverse_sqrt(step: int, warmup: int, steps: int) -> float:  # noqa: ARG001 - as Schedule
    """Rise linearly, then fall with 1 / sqrt(step) (Vaswani et al. 2017, equation 3)."""
    warmup = max(warmup, 1)
    return min(step / warmup, math.sqrt(warmup / step))


def cosine(step: int, warmup: int, steps: int) -> float:
    """Rise linearly, then fall to 0 along half a cosine (Loshchilov & Hutter 2017)."""
    return _warm(step, warmup, steps, lambda done: 0.5 * (1 + math.cos(math.pi * done)))


def linear(step: int, warmup: int, steps: int) -> float:
    """Rise linearly, then fall linearly to 0."""
    return _warm(step, warmup, steps, lambda done: 1 - done)


def constant(step: int, warmup: int, steps: int) -> float:
    """Rise linearly, then stay."""
    return _warm(step, warmup, steps, lambda _: 1.0)


def _warm(step: int, warmup: int, steps: int, after: Callable[[float], float]) -> float:
    if step < warmup:
        return step / warmup
    return after(min((step - warmup) / max(steps - warmup, 1), 1.0))


SCHEDULES: dict[ScheduleName, Schedule] = {
    "inverse-sqrt": inverse_sqrt,
    "cosine": cosine,
    "linear": linear,
    "constant": constant,
}


def learning_rate(step: int, config: TrainConfig) -> float:
    """Return the learning rate of a step, the first step being 1."""
    schedule, restart = SCHEDULES[config.schedule], config.restart
    if restart is None:
        return config.learning_rate * schedule(step, config.warmup, config.steps)
    if step <= restart.step:
        return config.learning_rate * schedule(step, config.warmup, restart.step)
    again, left = step - restart.step, config.steps - restart.step
    return config.learning_rate * restart.scale * schedule(again, config.warmup, left)
