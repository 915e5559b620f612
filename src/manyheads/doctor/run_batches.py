"""A few batches of a run's data, as training and as validation read them.

Some hundred examples, with the plain loss (no smoothing, no second pass, no augmentation), so that
training and validation data are measured alike.
Pipelines make them (`Pipeline.samples`); what differs between kinds of data is a method here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.doctor.finding import Finding
from manyheads.doctor.run_inspection import RunInspection
from manyheads.doctor.weights import Weights
from manyheads.streams import generator
from manyheads.train.training_task import Task

TEXTS = 200  # sentences or pairs of each split
# Of the loss of the best answer that does not depend on the input: what is closer has learned
# nothing, but for noise and a few easy examples.
NOTHING = 0.95
HALF = 0.5  # of the same: a training loss below this was learned well


def random_sample(count: int, wanted: int) -> np.ndarray:
    """Choose so many of `count` things at random, as every second one may be of one class."""
    return np.sort(generator(0, "doctor").permutation(count)[:wanted])


class Learned(NamedTuple):
    """Losses on samples of training and validation data, and without the input."""

    train: float
    valid: float
    # The loss without the input: with another input, or the entropy of the right answers.
    blind_train: float
    blind_valid: float

    @property
    def gains(self) -> tuple[float, float]:
        """The gain of the input in nats, in training and in validation data."""
        return self.blind_train - self.train, self.blind_valid - self.valid


class Examined(NamedTuple):
    """Findings of one examination, and what was looked at or could not be."""

    findings: list[Finding]
    looked_at: Sequence[str] = ()
    not_looked_at: Sequence[str] = ()


# Examines what a model writes: (model, step, finished).
Write = Callable[[nn.Module, int, bool], Examined]
Predictions = tuple[Tensor, Tensor]  # log-probabilities or logits (example, class), and classes


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Splits of a run, and tasks over a part of each."""

    train: Task[Any]
    valid: Task[Any]
    sizes: tuple[int, int]  # of the samples
    validation: int  # number of all validation examples
    write: Write | None = None
    labelled: bool = False  # images with classes: features of the last layer can be compared

    # What `Learned` compares with.
    baseline: ClassVar[str] = "of the best answer that does not depend on the input"
    # More remedy against one answer for all, and its settings.
    remedy: ClassVar[tuple[str, dict[str, object]]] = (".", {})

    def predictions(self, model: nn.Module, task: Task[Any]) -> Predictions | None:
        """Return predictions for a task's training data; None if it has no classes."""
        return None

    def blind_losses(self, model: nn.Module) -> list[float] | None:
        """Return the losses without the input: here the entropies of the right answers, in nats."""
        entropies = []
        for task in (self.train, self.valid):
            predictions = self.predictions(model, task)
            if predictions is None:
                return None
            _, counts = predictions[1].unique(return_counts=True)
            shares = counts / counts.sum()
            entropies.append(float(-(shares * shares.log()).sum()))
        return entropies

    def nothing_learned(self, learned: Learned) -> bool:
        """Tell whether answers do not depend on the input, not even in training data."""
        return 0 < NOTHING * learned.blind_train <= learned.train

    def memorised(self, learned: Learned) -> bool:
        """Tell whether training data are known by heart, and validation data not at all."""
        valid, blind = learned.valid, learned.blind_valid
        return learned.train <= HALF * learned.blind_train and valid >= blind > 0

    def examples(self) -> list[str]:
        """Show a few training examples with their answers."""
        return []

    def class_name(self, number: int) -> str:
        """Name a class."""
        return f"token {number}"

    def leaks(self) -> Examined:
        """Look for leaks of the answers, and of validation data into training."""
        return Examined([])

    def leaks_in_texts(self, *findings: Finding) -> Examined:
        """Report leaks in texts."""
        looked_at = f"leaks: all {self.validation:,} validation texts, whether training has them"
        return Examined(list(findings), [looked_at])


def mean_loss(model: nn.Module, task: Task[Any]) -> float:
    """Measure the mean loss of a task's training data, which here are a sample."""
    total, weight = 0.0, 0.0
    with torch.inference_mode():
        for batch in task.load(0, task.plan(0)):
            loss = task.loss(model, batch)
            total += float(loss.sum)
            weight += loss.weight
    return total / weight


class Behaviour(NamedTuple):
    """A trained model, and samples of its run's data to examine it on."""

    model: nn.Module
    samples: Samples
    run: RunInspection
    weights: Weights | None  # None: the initial ones are not known
