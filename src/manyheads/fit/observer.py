"""Observers of a whole run, and what is said of its scores; the simplest prints lines."""

import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from manyheads.fit.pace import duration
from manyheads.generation.output_monitor import SIGNS
from manyheads.train.history import read_history
from manyheads.train.loop import Observer
from manyheads.train.train_config import EarlyStop
from manyheads.train.training_task import lower_is_better


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


def how_it_ended(out: Path, rule: EarlyStop | None, steps: int) -> list[str]:
    """Say which weights are kept, where they are not the last, and what they changed.

    One line is about the weights, the others are about the scores that were measured before the
    first step, too.
    """
    scored = read_history(out / "metrics.jsonl").validations
    if not scored:
        return []
    before, after, said = scored[0], scored[-1], []
    if rule is not None:
        judged = [line for line in scored if math.isfinite(line.get(rule.metric, math.nan))]
        sign = -1 if lower_is_better(rule.metric) else 1
        after = max(judged, key=lambda line: sign * line[rule.metric], default=after)
        last = int(scored[-1]["step"])
        if last < steps:
            said = [
                f"stopped at step {last:,} of {steps:,}: {rule.patience} validations were no better"
            ]
        if after["step"] < last:
            value = f"{rule.metric} {after[rule.metric]:.2f}"
            said.append(f"kept the weights of step {int(after['step']):,}: {value}, the best")
    where = f"after step {after['step']:,}" if after["step"] else "still, as no step was better"
    return said + [
        f"{key}: {before[key]:.2f} before training, {after[key]:.2f} {where}"
        for key in _scores(before)
        if before["step"] == 0 and key.startswith("val_") and key in after
    ]
