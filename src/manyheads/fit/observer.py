"""Observers of a whole run; the simplest prints lines."""

import sys
from collections.abc import Mapping
from typing import Protocol

from manyheads.fit.pace import duration
from manyheads.generation.output_monitor import SIGNS
from manyheads.train.loop import Observer


class RunObserver(Observer, Protocol):
    """Events of a run: those of the training loop, and messages before and after."""

    def say(self, message: str) -> None:
        """Called with what happens before and after training."""


class PrintObserver:
    """Prints to stderr what happens: the lines of the log, and the scores of every validation."""

    def say(self, message: str) -> None:
        """Print a line."""
        print(message, file=sys.stderr)

    def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
        """Print a line of the log when it is new."""
        if line.get("step") == step:
            self.say(f"step {step:,} of {steps:,}: {described(line)}")

    def validated(self, step: int, metrics: dict[str, float]) -> None:
        """Print a validation's scores; its signs of trouble are in the log, and warned of."""
        scores = {name: v for name, v in metrics.items() if name.removeprefix("val_") not in SIGNS}
        numbers = "  ".join(f"{name} {value:.2f}" for name, value in scores.items())
        self.say(f"step {step:,}, validation: {numbers}")


def described(line: Mapping[str, float]) -> str:
    """Write loss, learning rate, speed and time left of a line of the log, as far as it has them.

    Examples:
        >>> described({"loss": 2.5, "learning_rate": 1e-3, "tokens_per_second": 9e3})
        'loss 2.500  lr 1.0e-03  9,000 tokens/s'
    """
    parts = (
        [f"loss {line['loss']:.3f}", f"lr {line['learning_rate']:.1e}"] if "loss" in line else []
    )
    parts += [
        f"{value:,.0f} {name.removesuffix('_per_second')}/s"
        for name, value in line.items()
        if name.endswith("_per_second")
    ]
    if "seconds_left" in line:
        parts.append(f"{duration(line['seconds_left'])} left")
    return "  ".join(parts)


class SilentObserver(PrintObserver):
    """Says nothing: of several ranks, only the first reports."""

    def say(self, message: str) -> None:
        """Print nothing."""
