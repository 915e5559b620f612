"""A small thing to learn, to watch the training loop by: weighted points near a plane."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.data.batching.buckets import rank_part, shuffled
from manyheads.train.loop import fit
from manyheads.train.train_config import TrainConfig
from manyheads.train.training_task import Indices, Loss
from tests.made import Silent


@dataclass(frozen=True)
class Points:
    """A batch."""

    x: Tensor
    y: Tensor
    weights: Tensor
    indices: Indices

    @property
    def units(self) -> int:
        return len(self.indices)


class Plane:
    """A Task: points with unequal weights, as sentences have unequal numbers of tokens."""

    unit = "points"

    def __init__(self, *, points: int = 20, batch_size: int = 4, seed: int = 1) -> None:
        random = np.random.default_rng(0)
        self.x = torch.from_numpy(random.normal(size=(points, 3))).float()
        self.y = self.x @ torch.tensor([1.0, -2.0, 0.5])
        self.weights = torch.from_numpy(random.integers(1, 9, points)).float()
        self.batch_size = batch_size
        self.seed = seed
        self.seen: list[list[int]] = []

    def plan(self, epoch: int, rank: int = 0, world: int = 1) -> list[Indices]:
        batches = shuffled(len(self.x), self.batch_size, seed=self.seed, epoch=epoch)
        return rank_part(batches, rank, world)

    def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[Points]:
        for chosen in batches:
            yield Points(self.x[chosen], self.y[chosen], self.weights[chosen], chosen)

    def loss(self, model: nn.Module, batch: Points) -> Loss:
        self.seen.append(batch.indices.tolist())
        distance = (model(batch.x)[:, 0] - batch.y).abs()
        weight = batch.weights.sum().item()
        total = (batch.weights * distance.square()).sum()
        return Loss(total, weight, {"distance": (batch.weights * distance).sum().item()})

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        return {"loss": (model(self.x)[:, 0] - self.y).square().mean().item()}

    def describe(self, batch: Points) -> str:
        return f"points {sorted(batch.indices.tolist())}"


class Scripted(Plane):
    """Validation gives these scores, one after the other."""

    def __init__(self, *scores: float) -> None:
        super().__init__()
        self.scores = list(scores)

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        return {"score": self.scores.pop(0)}


class Unplugged(Silent):
    """Ends the run without a word in the middle of a step, as a power cut would."""

    def __init__(self, step: int) -> None:
        self.step = step

    def progress(self, step: int, steps: int, line: dict[str, float]) -> None:
        if step == self.step:
            raise KeyboardInterrupt


def network(*, dropout: float = 0.25) -> nn.Sequential:
    """The same weights at each call."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 1))


def config(**changes: Any) -> TrainConfig:
    """Twelve steps, two and a bit epochs of five batches; a checkpoint every fourth step."""
    settings: dict[str, Any] = {
        "steps": 12,
        "learning_rate": 0.01,
        "warmup": 3,
        "log_every": 2,
        "validate_every": 5,
        "save_every": 4,
    }
    return TrainConfig(**(settings | changes))


def run(folder: Path, task: Plane, how: TrainConfig, **changes: Any) -> nn.Module:
    """Train in a folder, going on where it stands; return the model as it is at the end."""
    folder.mkdir(exist_ok=True)
    settings: dict[str, Any] = {
        "model": network(),
        "seed": 1,
        "environment": {"threads": "1"},
        "save_best": lambda model: None,
        "observer": Silent(),
    }
    settings |= changes
    model: nn.Module = settings.pop("model")
    fit(model, task, how, folder, **settings)
    return model
