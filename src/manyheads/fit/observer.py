"""Observers of a whole run, and what is said of its scores; the simplest prints lines."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from manyheads.fit.pace import duration
from manyheads.generation.output_monitor import SIGNS
from manyheads.train.early_stop import is_better
from manyheads.train.history import read_history
from manyheads.train.loop import Observer
from manyheads.train.train_config import EarlyStop


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
        numbers = "  ".join(f"{name} {metrics[name]:.2f}" for name in _scores(metrics))
        self.say(f"step {step}: {numbers}")


def described(line: Mapping[str, float]) -> str:
    """Write loss, learning rate, speed and time left of a line of the log, as far as it has them.

    Examples:
        >>> described({"loss": 2.5, "learning_rate": 1e-3, "tokens_per_second": 9e3})
        'loss 2.500  lr 1.0e-03  9,000 tokens/s'
    """
    parts = []
    if "loss" in line:
        parts = [f"loss {line['loss']:.3f}", f"lr {line['learning_rate']:.1e}"]
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


def _scores(metrics: Mapping[str, float]) -> list[str]:
    return [name for name in metrics if name.removeprefix("val_") not in SIGNS]


def changes_of_scores(out: Path, rule: EarlyStop | None) -> list[str]:
    """Compare the validation before the first step with that of the weights that are kept.

    Args:
        out: the run folder.
        rule: which weights those are; None: the last.

    Returns:
        A line for each score; none if there was no validation before the first step.
    """
    scored = read_history(out / "metrics.jsonl").validations
    if not scored or scored[0]["step"] != 0:
        return []
    before, after = scored[0], scored[-1]
    if rule is not None:
        after = before
        for line in scored:
            if is_better(line[rule.metric], after[rule.metric], rule.metric):
                after = line
    where = f"after step {after['step']:,}" if after["step"] else "still, as no step was better"
    return [
        f"{key}: {before[key]:.2f} before training, {after[key]:.2f} {where}"
        for key in _scores(before)
        if key.startswith("val_") and key in after
    ]
