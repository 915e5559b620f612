"""Image classification: one class per image, or several (multi-label)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.bounds import Count
from manyheads.data.augment.augment import Augmentation, Augmenter
from manyheads.data.batching.batches import ImageBatch
from manyheads.data.batching.buckets import rank_part, shuffled
from manyheads.data.images.image_set import ImageSet, Preprocessing, spread
from manyheads.tasks.class_metrics import mean_average_precision, micro_f1
from manyheads.tasks.distil import Distil, Teacher
from manyheads.train.class_losses import (
    Weighted,
    balanced_weights,
    binary_cross_entropy,
    distillation,
    one_hot,
    soft_cross_entropy,
)
from manyheads.train.config import TrainConfig
from manyheads.train.losses import smoothed_cross_entropy
from manyheads.train.task import Batch, Indices, Loss

IN_MEMORY = 2 << 30  # bytes of pixels kept; a larger set is read from disk again each epoch
METRICS = ("accuracy", "loss")
MULTI_LABEL_METRICS = ("map", "f1", "loss")
ROWS = 256  # images per forward pass


@dataclass(frozen=True, kw_only=True)
class ImageTrainConfig(TrainConfig):
    """Fields of the [train] table of every task on images."""

    batch_size: Count = 128  # images


C = TypeVar("C", bound=ImageTrainConfig)


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


class Pixels:
    """The preprocessed pixels of a set, cached if they fit into memory."""

    def __init__(self, images: ImageSet, preprocessing: Preprocessing) -> None:
        self.images = images
        self.preprocessing = preprocessing
        shape = (preprocessing.channels, preprocessing.height, preprocessing.width)
        fits = len(images) * int(np.prod(shape)) <= IN_MEMORY
        self._known = np.zeros(len(images) if fits else 0, dtype=bool)
        self._pixels = np.empty((len(self._known), *shape), dtype=np.uint8)

    def __getitem__(self, indices: np.ndarray) -> Tensor:
        """Return pixels (image, channel, height, width), 0..255."""
        if not len(self._known):
            return torch.from_numpy(np.stack(self._read(indices)))
        new = indices[~self._known[indices]]
        for index, pixels in zip(new, self._read(new), strict=True):
            self._pixels[index] = pixels
            self._known[index] = True
        return torch.from_numpy(self._pixels[indices])

    def _read(self, indices: np.ndarray) -> list[np.ndarray]:
        """Decode images on all threads."""
        threads = min(torch.get_num_threads(), len(indices))
        return list(
            spread(
                lambda index: self.images.pixels(index, self.preprocessing),
                indices.tolist(),
                threads,
            )
        )


class TrainingImages(Generic[C]):
    """The part of a Task that plans, reads and augments training images."""

    unit = "images"

    def __init__(
        self,
        train: ImageSet,
        valid: ImageSet,
        preprocessing: Preprocessing,
        augmentation: Augmentation,
        config: C,
        *,
        seed: int,
        device: torch.device | None = None,
    ) -> None:
        self.train = train
        self.pixels = Pixels(train, training_preprocessing(preprocessing, augmentation))
        self.valid = Pixels(valid, preprocessing)
        self.preprocessing = preprocessing
        self.augmentation = augmentation
        self.config = config
        self.seed = seed
        self.device = device or torch.device("cpu")

    def plan(self, epoch: int, rank: int = 0, world: int = 1) -> list[Indices]:
        """Shuffle the images."""
        batches = shuffled(len(self.train), self.config.batch_size, seed=self.seed, epoch=epoch)
        return rank_part(batches, rank, world)

    def augmenter(self, epoch: int) -> Augmenter:
        """Draw the augmentations of an epoch."""
        size = (self.preprocessing.height, self.preprocessing.width)
        return Augmenter(self.augmentation, len(self.train), seed=self.seed, epoch=epoch, size=size)

    def describe(self, batch: Batch) -> str:
        """Return the names of the images of a batch."""
        return self.train.describe(batch.indices)


class ClassifyTask(TrainingImages[ClassifyTrainConfig]):
    """A Task for the training loop."""

    def __init__(
        self,
        train: ImageSet,
        valid: ImageSet,
        preprocessing: Preprocessing,
        augmentation: Augmentation,
        config: ClassifyTrainConfig,
        *,
        seed: int,
        device: torch.device | None = None,
        distil: Distil | None = None,
        teacher: Teacher | None = None,
    ) -> None:
        """Prepare the data; both sets have the same classes.

        Images are augmented on the CPU if there is no `device`. A teacher is another classifier to
        learn from, as the [distil] table says.
        """
        super().__init__(
            train, valid, preprocessing, augmentation, config, seed=seed, device=device
        )
        self.distil = distil
        self.teacher = teacher
        self.weights = (
            balanced_weights(train.labels, len(train.classes)) if config.class_weights else None
        )

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
                taught,
                self.teacher(batch.images),
                self.distil.temperature,
                hard=self.distil.hard,
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
        return score(model, self.valid)


def training_preprocessing(
    preprocessing: Preprocessing, augmentation: Augmentation
) -> Preprocessing:
    """Return the preprocessing before augmentation: larger and uncropped, for a random crop."""
    if augmentation.resized_crop == 1:
        return preprocessing
    larger = augmentation.oversize
    return replace(
        preprocessing,
        height=round(larger * preprocessing.height),
        width=round(larger * preprocessing.width),
        crop=1.0,
    )


@torch.inference_mode()
def predict_logits(model: nn.Module, preprocessing: Preprocessing, pixels: Tensor) -> Tensor:
    """Return logits (image, class) for pixels (image, channel, height, width)."""
    device = next(model.parameters()).device
    logits = [
        model(preprocessing.normalise(part.to(device))).float() for part in pixels.split(ROWS)
    ]
    return torch.cat(logits).cpu()


def classify(model: nn.Module, preprocessing: Preprocessing, pixels: Tensor) -> Tensor:
    """Return log-probabilities (image, class) for pixels (image, channel, height, width)."""
    return F.log_softmax(predict_logits(model, preprocessing, pixels), dim=-1)


def predict_all_logits(model: nn.Module, pixels: Pixels) -> Tensor:
    """Return the logits (image, class) of a whole set, computed in batches."""
    parts = torch.arange(len(pixels.images)).split(ROWS)
    return torch.cat(
        [predict_logits(model, pixels.preprocessing, pixels[p.numpy()]) for p in parts]
    )


def score(model: nn.Module, pixels: Pixels) -> dict[str, float]:
    """Measure accuracy in percent and mean cross-entropy on a labelled set.

    Multi-label: mean average precision, F1 at probability 1/2, and sigmoid loss.
    """
    labels = torch.from_numpy(pixels.images.labels)
    logits = predict_all_logits(model, pixels)
    if pixels.images.multi_label:
        probabilities, wanted = logits.sigmoid().numpy(), pixels.images.labels
        loss = binary_cross_entropy(logits, labels, smoothing=0.0)
        return {
            "map": mean_average_precision(probabilities, wanted),
            "f1": micro_f1(probabilities > 0.5, wanted),
            "loss": loss.sum.item() / loss.weight,
        }
    right = int((logits.argmax(dim=1) == labels).sum())
    nll = F.nll_loss(F.log_softmax(logits, dim=-1).double(), labels)
    return {"accuracy": 100 * right / len(labels), "loss": nll.item()}
