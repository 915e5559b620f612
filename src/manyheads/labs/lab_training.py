"""Training inside an experiment: the training loop, in a temporary folder."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import torch

from manyheads.fit.observer import SilentObserver
from manyheads.models.model_config import Builds
from manyheads.streams import stream
from manyheads.train.device import best_device
from manyheads.train.history import metric_lines
from manyheads.train.loop import fit
from manyheads.train.train_config import TrainConfig

M = TypeVar("M", bound=torch.nn.Module)
C = TypeVar("C", bound=TrainConfig)


@dataclass(frozen=True)
class Learned:
    """How a training run went."""

    lines: list[dict[str, float]]  # of the log: losses, and validations (val_...)

    @property
    def loss(self) -> float:
        """The last training loss of the log: a mean since the line before."""
        return next(line["loss"] for line in self.lines[::-1] if "loss" in line)

    def last(self, metric: str) -> float:
        """The last value of a validation metric."""
        return next(line[f"val_{metric}"] for line in self.lines[::-1] if f"val_{metric}" in line)


def training(kind: type[C], steps: int, rate: float, *, lines: int = 10, **settings: Any) -> C:
    """The [train] table of a model of the lab: a tenth warm-up, validation only at the end.

    `lines` are those of the log, `settings` further entries of the table.
    """
    usual = {"warmup": max(steps // 10, 1), "log_every": max(steps // lines, 1)}
    usual |= {"validate_every": steps, "save_every": steps}
    return kind(steps=steps, learning_rate=rate, **(usual | settings))


def parameters(model: torch.nn.Module) -> int:
    """Count the parameters of a model; tied ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def fresh(config: Builds[M], seed: int) -> M:
    """Build a model with initial weights drawn from a seed."""
    torch.manual_seed(stream(seed, "init"))
    return config.build().to(best_device())


def learn(model: torch.nn.Module, task: Any) -> Learned:
    """Train a model by a task that knows its own [train] table and seed; set it to evaluation."""
    with TemporaryDirectory(prefix="manyheads-lab-") as folder:
        fit(
            model,
            task,
            task.config,
            Path(folder),
            seed=task.seed,
            environment={},
            save_best=lambda model: None,  # noqa: ARG005 - as fit calls it
            observer=SilentObserver(),
        )
        lines = [line for _, line in metric_lines(Path(folder) / "metrics.jsonl")]
    model.eval()
    return Learned(lines)
