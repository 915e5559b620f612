"""Classification of pictures: a ViT, cross-entropy over classes, accuracy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.data.augment import Augmentation, Augmenter
from manyheads.data.batches import ImageBatch
from manyheads.data.buckets import shuffled
from manyheads.data.images import ImageSet, Preprocessing
from manyheads.train.config import Count, TrainConfig
from manyheads.train.losses import smoothed_cross_entropy
from manyheads.train.task import Indices, Loss

IN_MEMORY = 2 << 30  # bytes of pixels kept; a larger set is read from disk again each epoch
METRICS = ("accuracy", "loss")
ROWS = 256  # pictures classified at a time


@dataclass(frozen=True, kw_only=True)
class ClassifyTrainConfig(TrainConfig):
    """The [train] table of a classifier."""

    batch_size: Count = 128  # pictures


class Pixels:
    """The pixels of a set after cropping and resizing, remembered where memory allows."""

    def __init__(self, images: ImageSet, preprocessing: Preprocessing) -> None:
        self.images = images
        self.preprocessing = preprocessing
        shape = (preprocessing.channels, preprocessing.height, preprocessing.width)
        fits = len(images) * int(np.prod(shape)) <= IN_MEMORY
        self._known = np.zeros(len(images) if fits else 0, dtype=bool)
        self._pixels = np.empty((len(self._known), *shape), dtype=np.uint8)

    def __getitem__(self, indices: np.ndarray) -> Tensor:
        """Return pixels (picture, channel, height, width), 0..255.

        Raises:
            DataError: a picture cannot be read.
        """
        if not len(self._known):
            return torch.from_numpy(np.stack([self._read(index) for index in indices]))
        for index in indices[~self._known[indices]]:
            self._pixels[index] = self._read(index)
            self._known[index] = True
        return torch.from_numpy(self._pixels[indices])

    def _read(self, index: int) -> np.ndarray:
        return self.preprocessing.pixels(self.images.open(int(index)))


class ClassifyTask:
    """A Task for the training loop."""

    unit = "images"

    def __init__(
        self,
        train: ImageSet,
        valid: ImageSet,
        preprocessing: Preprocessing,
        augmentation: Augmentation,
        config: ClassifyTrainConfig,
        *,
        seed: int,
    ) -> None:
        self.train = train
        self.pixels = Pixels(train, preprocessing)
        self.valid = Pixels(valid, preprocessing)
        self.preprocessing = preprocessing
        self.augmentation = augmentation
        self.config = config
        self.seed = seed

    def plan(self, epoch: int) -> list[Indices]:
        """Shuffle the pictures."""
        return shuffled(len(self.train), self.config.batch_size, seed=self.seed, epoch=epoch)

    def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[ImageBatch]:
        """Read, augment and normalise the planned batches."""
        augment = Augmenter(self.augmentation, len(self.train), seed=self.seed, epoch=epoch)
        for indices in batches:
            pixels = augment(self.pixels[indices], indices)
            labels = torch.from_numpy(self.train.labels[indices])
            yield ImageBatch(self.preprocessing.normalise(pixels), labels, indices)

    def loss(self, model: nn.Module, batch: ImageBatch) -> Loss:
        """Sum the label-smoothed cross-entropy over the pictures."""
        batch = batch.to(next(model.parameters()).device)
        logits = model(batch.images)
        right = int((logits.argmax(dim=1) == batch.labels).sum())
        loss = smoothed_cross_entropy(logits, batch.labels, self.config.label_smoothing)
        return Loss(loss, len(batch.labels), {"accuracy": 100.0 * right})

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Classify the validation pictures."""
        return score(model, self.valid)

    def describe(self, batch: ImageBatch) -> str:
        """Name the pictures."""
        return self.train.describe(batch.indices)


@torch.inference_mode()
def classify(model: nn.Module, preprocessing: Preprocessing, pixels: Tensor) -> Tensor:
    """Return log-probabilities (picture, class) for pixels (picture, channel, height, width)."""
    device = next(model.parameters()).device
    logits = [
        model(preprocessing.normalise(part).to(device)).float() for part in pixels.split(ROWS)
    ]
    return F.log_softmax(torch.cat(logits), dim=-1).cpu()


def score(model: nn.Module, pixels: Pixels) -> dict[str, float]:
    """Measure accuracy in percent and mean cross-entropy on a set with known classes."""
    labels = torch.from_numpy(pixels.images.labels)
    right, loss = 0, 0.0
    for indices in torch.arange(len(labels)).split(ROWS):
        log_probabilities = classify(model, pixels.preprocessing, pixels[indices.numpy()])
        right += int((log_probabilities.argmax(dim=1) == labels[indices]).sum())
        loss += F.nll_loss(log_probabilities, labels[indices], reduction="sum").item()
    return {"accuracy": 100 * right / len(labels), "loss": loss / len(labels)}
