"""Observers of a whole run; the simplest prints lines."""

import sys
from typing import Protocol

from manyheads.generation.output_monitor import SIGNS
from manyheads.train.loop import Observer


class RunObserver(Observer, Protocol):
    """Events of a run: those of the training loop, and messages before and after."""

    def say(self, message: str) -> None:
        """Called with what happens before and after training."""


class PrintObserver:
    """Prints to stderr what happens, and the scores of every validation; steps pass silently."""

    def say(self, message: str) -> None:
        """Print a line."""
        print(message, file=sys.stderr)

    def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
        """Print nothing."""

    def validated(self, step: int, metrics: dict[str, float]) -> None:
        """Print a validation's scores; its signs of trouble are in the log, and warned of."""
        scores = {name: v for name, v in metrics.items() if name.removeprefix("val_") not in SIGNS}
        numbers = "  ".join(f"{name} {value:.2f}" for name, value in scores.items())
        self.say(f"step {step}: {numbers}")


class SilentObserver(PrintObserver):
    """Says nothing: of several ranks, only the first reports."""

    def say(self, message: str) -> None:
        """Print nothing."""
