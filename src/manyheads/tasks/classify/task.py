"""Image classification: one class per image, or several (multi-label)."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.data.batching.batches import ImageBatch
from manyheads.data.even_sample import evenly_spaced
from manyheads.data.images.image_set import ImageSet
from manyheads.data.images.pixels import predict_all_logits
from manyheads.fit.training_images import ImageTrainConfig, TrainingImages
from manyheads.tasks.classify.class_metrics import mean_average_precision, micro_f1
from manyheads.tasks.classify.distil import Distil, Teacher
from manyheads.train.class_losses import (
    Weighted,
    balanced_weights,
    binary_cross_entropy,
    distillation,
    one_hot,
    soft_cross_entropy,
)
from manyheads.train.losses import smoothed_cross_entropy
from manyheads.train.training_task import EXAMPLES, Indices, Loss

METRICS = ("accuracy", "loss")
MULTI_LABEL_METRICS = ("map", "f1", "loss")


@dataclass(frozen=True, kw_only=True)
class ClassifyTrainConfig(ImageTrainConfig):
    """The [train] table of a classifier."""

    # "balanced": rare classes have the same total weight in the loss as frequent ones.
    class_weights: Literal["balanced"] | None = None
    channels_last: bool = False  # memory format: faster convolutions in bf16

    @property
    def memory_format(self) -> torch.memory_format:
        """The memory format set by `channels_last`."""
        return torch.channels_last if self.channels_last else torch.contiguous_format


@dataclass(eq=False)
class ClassifyTask(TrainingImages[ClassifyTrainConfig]):
    """A Task for the training loop; both sets of images have the same classes."""

    _: KW_ONLY
    distil: Distil | None = None
    teacher: Teacher | None = None  # another classifier to learn from, as [distil] says

    def __post_init__(self) -> None:
        super().__post_init__()
        train, weigh = self.train, self.config.class_weights
        self.weights = balanced_weights(train.labels, len(train.classes)) if weigh else None

    def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[ImageBatch]:
        """Read, augment and normalise the planned batches on the device."""
        augment = self.augmenter(epoch)
        for indices in batches:
            pixels = augment(self.pixels[indices].to(self.device), indices)
            labels = torch.from_numpy(self.train.labels[indices]).to(self.device)
            if self.augmentation.mixes:
                wanted = one_hot(labels, len(self.train.classes))
                pixels, labels = augment.mix(pixels, wanted, indices)
            yield ImageBatch(self.preprocessing.normalise(pixels), labels, indices)

    def loss(self, model: nn.Module, batch: ImageBatch) -> Loss:
        """Sum the loss over the images: label loss, and distillation loss with a teacher."""
        batch = batch.to(next(model.parameters()).device)
        output = model(batch.images.contiguous(memory_format=self.config.memory_format))
        # A model with a distillation head returns two logits in training (DeiT, equation 3).
        logits, taught = output if isinstance(output, tuple) else (output, output)
        if isinstance(output, tuple) and self.teacher is None:  # both learn from the labels
            logits = (logits + taught) / 2
        loss, weight = self._towards_labels(logits, batch.labels)
        if self.distil is not None and self.teacher is not None:
            distance = distillation(
                taught, self.teacher(batch.images), self.distil.temperature, hard=self.distil.hard
            )
            share = self.distil.weight
            loss = (1 - share) * loss + share * distance * (weight / len(logits))
        return Loss(loss, weight, self._logs(logits, batch.labels, weight))

    def _towards_labels(self, logits: Tensor, labels: Tensor) -> Weighted:
        smoothing = self.config.label_smoothing
        weights = None if self.weights is None else self.weights.to(logits.device)
        if self.train.multi_label:
            return binary_cross_entropy(logits, labels, smoothing, weights)
        if labels.ndim == 1 and weights is None:
            return Weighted(smoothed_cross_entropy(logits, labels, smoothing), float(len(labels)))
        return soft_cross_entropy(logits, one_hot(labels, logits.shape[1]), smoothing, weights)

    def _logs(self, logits: Tensor, labels: Tensor, weight: float) -> dict[str, float]:
        if self.train.multi_label:
            return {}
        main = labels if labels.ndim == 1 else labels.argmax(dim=1)
        right = int((logits.argmax(dim=1) == main).sum())
        return {"accuracy": 100.0 * right * (weight / len(labels))}

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Classify the validation images."""
        logits, images = predict_all_logits(model, self.valid_pixels), self.valid
        if not images.multi_label:
            names = images.classes
            self.examples = [
                self.example(n, names[logits[n].argmax()], names[images.labels[n]])
                for n in evenly_spaced(len(logits), EXAMPLES)
            ]
        return scores(logits, images)


def scores(logits: Tensor, images: ImageSet) -> dict[str, float]:
    """Measure accuracy in percent and mean cross-entropy, of the logits (image, class) of a set.

    Multi-label: mean average precision, F1 at probability 1/2, and sigmoid loss.
    """
    labels = torch.from_numpy(images.labels)
    if images.multi_label:
        probabilities, wanted = logits.sigmoid().numpy(), images.labels
        loss = binary_cross_entropy(logits, labels, smoothing=0.0)
        return {
            "map": mean_average_precision(probabilities, wanted),
            "f1": micro_f1(probabilities > 0.5, wanted),
            "loss": loss.sum.item() / loss.weight,
        }
    right = int((logits.argmax(dim=1) == labels).sum())
    nll = F.nll_loss(F.log_softmax(logits, dim=-1).double(), labels)
    return {"accuracy": 100 * right / len(labels), "loss": nll.item()}
