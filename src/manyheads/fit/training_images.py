"""Images in training: what every task on images needs."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import torch

from manyheads.bounded_numbers import Count
from manyheads.data.augment.augment import Augmentation, Augmenter
from manyheads.data.batching.buckets import rank_part, shuffled
from manyheads.data.images.image_set import ImageSet, Preprocessing
from manyheads.data.images.pixels import Pixels
from manyheads.lens.thumbnail import data_url
from manyheads.train.train_config import TrainConfig
from manyheads.train.training_task import Batch, Example, Indices

CPU = torch.device("cpu")


@dataclass(frozen=True, kw_only=True)
class ImageTrainConfig(TrainConfig):
    """Fields of the [train] table of every task on images."""

    batch_size: Count = 128  # images


C = TypeVar("C", bound=ImageTrainConfig)


@dataclass(eq=False)
class TrainingImages(Generic[C]):
    """The part of a Task that plans, reads and augments training images."""

    unit = "images"

    train: ImageSet
    valid: ImageSet
    preprocessing: Preprocessing
    augmentation: Augmentation
    config: C
    _: KW_ONLY
    seed: int
    device: torch.device = CPU  # where images are augmented

    def __post_init__(self) -> None:
        before = training_preprocessing(self.preprocessing, self.augmentation)
        self.pixels = Pixels(self.train, before)
        self.valid_pixels = Pixels(self.valid, self.preprocessing)
        self.examples: Sequence[Example] = ()

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

    def example(self, index: int, output: str, truth: str) -> Example:
        """Show a validation image with its output, as it comes to the model."""
        pixels = self.valid_pixels[np.array([index])][0].permute(1, 2, 0)
        return Example(self.valid.names[index], output, truth, data_url(pixels))


def training_preprocessing(
    preprocessing: Preprocessing, augmentation: Augmentation
) -> Preprocessing:
    """Return the preprocessing before augmentation: larger and uncropped, for a random crop."""
    if augmentation.resized_crop == 1:
        return preprocessing
    sides = preprocessing.height, preprocessing.width
    height, width = (round(augmentation.oversize * side) for side in sides)
    return replace(preprocessing, height=height, width=width, crop=1.0)
