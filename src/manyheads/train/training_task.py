"""The seam between the loop and what is being learned."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from torch import Tensor, nn

Indices = np.ndarray  # which examples form a batch


class Batch(Protocol):
    """What the loop asks of a batch: to move to a device, and to say what it holds."""

    @property
    def indices(self) -> Indices:
        """The examples in the batch, to be named when something goes wrong."""

    @property
    def units(self) -> int:
        """How much was processed, in the task's unit (tokens, images)."""


B = TypeVar("B", bound=Batch)
B_contra = TypeVar("B_contra", bound=Batch, contravariant=True)


class Loss(NamedTuple):
    """A loss summed over `weight` items (tokens, images), so that batches can be added up."""

    sum: Tensor
    weight: float
    logs: Mapping[str, float]  # further sums over the same items, logged as means


class Task(Protocol[B]):
    """Data, loss and metric of one thing to learn. The model is passed in, so wrappers fit."""

    unit: str  # what a batch's `units` counts: "tokens", "images"

    def plan(self, epoch: int, rank: int = 0, world: int = 1) -> Sequence[Indices]:
        """Divide the training examples into batches: a pure function of seed and epoch.

        Of each batch a rank gets its part, which may be empty; the batches do not depend on the
        number of ranks.
        """

    def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[B]:
        """Make the planned batches, in order."""

    def loss(self, model: nn.Module, batch: B) -> Loss:
        """Compute the loss of one batch."""

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Measure the model on the validation data."""

    def describe(self, batch: B) -> str:
        """Name a batch's examples as the user knows them (file and lines)."""


@runtime_checkable
class OwnBackward(Protocol[B_contra]):
    """A task that adds up the gradients of a batch itself, where one graph would be too large."""

    def backward(self, model: nn.Module, batch: B_contra) -> Loss:
        """Compute the loss of one batch and add its gradients to those of the parameters.

        A loss that still has a graph is one whose gradients the loop is to compute.
        """
        ...


EXAMPLES = 8  # outputs of its last validation that a task may keep as `examples`, to be shown


class Example(NamedTuple):
    """An output for one validation example, as it is shown."""

    source: str  # a text, or the name of an image
    output: str
    truth: str
    image: str = ""  # a data URL


@runtime_checkable
class Rehearsal(Protocol):
    """A task whose validation takes longer before its model has learned to end its outputs."""

    def rehearse(self, model: nn.Module) -> float:
        """Return the seconds of a validation with outputs as long as the right ones."""


def lower_is_better(metric: str) -> bool:
    """Say which way a metric points, by the end of its name."""
    return metric.endswith(("loss", "perplexity", "ter", "cer"))
