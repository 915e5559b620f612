"""What several processes (ranks) share: a task in parts, sums over the ranks, whole tensors.

The model that the loop is given is wrapped then (`parallel.py`): DistributedDataParallel and
FSDP2's `fully_shard` average gradients over the ranks. Without a process group there is one rank.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

import torch
import torch.distributed as dist
from torch import Tensor, nn

from manyheads.errors import TrainingError
from manyheads.train.ranks import rank_and_world
from manyheads.train.training_task import B, Indices, Loss, Task

WRAPPERS = ("module", "_orig_mod")  # what DistributedDataParallel and torch.compile call the model


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the model inside its wrappers, whose parameters have plain names.

    A wrapper is a module whose only child has one of the names in WRAPPERS. FSDP2 has none: it
    changes the model in place.
    """
    children = dict(model.named_children())
    inner = [children[name] for name in WRAPPERS if children.keys() == {name}]
    return unwrapped(inner[0]) if inner else model


def summed(values: Sequence[float], device: torch.device) -> list[float]:
    """Add up each number over all ranks; with one rank, return them as they are."""
    if rank_and_world()[1] == 1:
        return list(values)
    sums = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(sums)
    return sums.tolist()


def whole(x: Tensor) -> Tensor:
    """Gather a tensor that FSDP2 has spread over the ranks; return any other as it is."""
    gather = getattr(x, "full_tensor", None)
    return x if gather is None else gather()


@dataclass(frozen=True, slots=True)
class RankBatch(Generic[B]):
    """One rank's part of a batch; if that is empty, another example, which counts nothing."""

    batch: B
    counts: bool

    @property
    def indices(self) -> Indices:
        """The examples in it."""
        return self.batch.indices

    @property
    def units(self) -> int:
        """How much was processed for the model to learn from."""
        return self.batch.units if self.counts else 0


class RankTask(Generic[B]):
    """A task as one of several ranks sees it: its part of every batch.

    Every rank takes part in every gradient, or the others would wait for it; without an example of
    a batch, its share is that of another example times 0.
    """

    def __init__(self, task: Task[B], rank: int, world: int) -> None:
        self.task = task
        self.unit = task.unit
        self.rank = rank
        self.world = world

    def plan(self, epoch: int, rank: int = 0, world: int = 1) -> Sequence[Indices]:
        """Return this rank's parts, some of which may be empty."""
        return self.task.plan(epoch, self.rank, self.world)

    def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[RankBatch[B]]:
        """Make the planned batches; in the place of an empty one, one of a single example."""
        spare = self.spare(epoch)
        loaded = self.task.load(epoch, [part if len(part) else spare for part in batches])
        for part, batch in zip(batches, loaded, strict=True):
            yield RankBatch(batch, len(part) > 0)

    def spare(self, epoch: int) -> Indices:
        """Return an example of this rank.

        Raises:
            TrainingError: no batch of the epoch has an example for this rank.
        """
        for part in self.plan(epoch):
            if len(part):
                return part[:1]
        raise TrainingError(
            f"Rank {self.rank} of {self.world} has nothing to train on: every batch has fewer "
            "examples than there are ranks. Start fewer processes, or make batches larger."
        )

    def loss(self, model: nn.Module, batch: RankBatch[B]) -> Loss:
        """Compute the loss of one part."""
        loss = self.task.loss(model, batch.batch)
        if batch.counts:
            return loss
        return Loss(loss.sum * 0, 0.0, dict.fromkeys(loss.logs, 0.0))

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Measure the model on all validation data."""
        return self.task.evaluate(model)

    def describe(self, batch: RankBatch[B]) -> str:
        """Name the examples of a part."""
        return self.task.describe(batch.batch)
