"""Images in training and in evaluation: what every task on images needs."""

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.bounded_numbers import Count
from manyheads.data.augment.augment import Augmentation, Augmenter
from manyheads.data.batching.buckets import rank_part, shuffled
from manyheads.data.images.image_set import ImageSet, Preprocessing, in_threads
from manyheads.train.train_config import TrainConfig
from manyheads.train.training_task import Batch, Indices

IN_MEMORY = 2 << 30  # bytes of pixels kept; a larger set is read from disk again each epoch
ROWS = 256  # images per forward pass


@dataclass(frozen=True, kw_only=True)
class ImageTrainConfig(TrainConfig):
    """Fields of the [train] table of every task on images."""

    batch_size: Count = 128  # images


C = TypeVar("C", bound=ImageTrainConfig)


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
        threads = min(torch.get_num_threads(), len(indices))
        return list(
            in_threads(
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


def predict_all_logits(model: nn.Module, pixels: Pixels) -> Tensor:
    """Return the logits (image, class) of a whole set, computed in batches."""
    parts = torch.arange(len(pixels.images)).split(ROWS)
    return torch.cat(
        [predict_logits(model, pixels.preprocessing, pixels[p.numpy()]) for p in parts]
    )
