"""Learning from pictures without labels: hide patches, and draw them from what is around them.

SimMIM (Xie et al. 2022): masked patches become a learned token, the encoder sees all tokens, one
linear layer predicts the pixels, and the loss is the L1 distance on what was hidden.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.data.augment import Augmentation, Augmenter
from manyheads.data.buckets import shuffled
from manyheads.data.images import ImageSet, Preprocessing
from manyheads.models.vit import Vit
from manyheads.nn.linear import Linear
from manyheads.nn.patch import patchify
from manyheads.streams import generator
from manyheads.tasks.classify import ROWS, Pixels, training_preprocessing
from manyheads.train.config import Count, Share, TrainConfig
from manyheads.train.task import Indices, Loss

METRICS = ("loss",)
ENCODER = "vit."  # in front of the names of the weights that a classifier starts from


@dataclass(frozen=True, kw_only=True)
class ReconstructTrainConfig(TrainConfig):
    """The [train] table of a model that reconstructs pictures."""

    batch_size: Count = 128  # pictures
    masked: Share = 0.6  # of the patches (Xie et al. 2022, table 1)


class Reconstructor(nn.Module):
    """A ViT that sees some patches only as "hidden", and a linear layer back to pixels."""

    def __init__(self, vit: Vit) -> None:
        super().__init__()
        config = vit.config
        self.vit = vit
        del self.vit.head
        self.hidden = nn.Parameter(torch.zeros(config.dim))
        self.decoder = Linear(config.dim, config.channels * config.patch**2)
        nn.init.trunc_normal_(self.hidden, std=0.02)
        nn.init.trunc_normal_(self.decoder.weight, std=0.02)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, images: Tensor, masked: Tensor) -> Tensor:
        """Predict the pixels of all patches.

        Args:
            images: (image, channel, height, width), normalised.
            masked: (image, patch) boolean, True = hidden.

        Returns:
            (image, patch, pixel), each patch flattened as `patchify` does.
        """
        vit = self.vit
        size = vit.config.patch
        grid = images.shape[2] // size, images.shape[3] // size
        patches = vit.patches(images)
        patches = torch.where(masked[:, :, None], self.hidden.to(patches.dtype), patches)
        x = vit.encode(vit.pool.prepend(patches), grid)
        return self.decoder(x[:, vit.pool.extra :])


@dataclass(frozen=True, slots=True)
class MaskedBatch:
    """Normalised images, and which of their patches are hidden."""

    images: Tensor  # (image, channel, height, width)
    masked: Tensor  # (image, patch)
    indices: np.ndarray

    @property
    def units(self) -> int:
        """The number of images."""
        return len(self.indices)


class ReconstructTask:
    """A Task for the training loop."""

    unit = "images"

    def __init__(
        self,
        train: ImageSet,
        valid: ImageSet,
        preprocessing: Preprocessing,
        augmentation: Augmentation,
        config: ReconstructTrainConfig,
        patch: int,
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
        self.patch = patch
        self.seed = seed
        self.device = device or torch.device("cpu")

    def plan(self, epoch: int) -> list[Indices]:
        """Shuffle the pictures."""
        return shuffled(len(self.train), self.config.batch_size, seed=self.seed, epoch=epoch)

    def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[MaskedBatch]:
        """Read, augment, normalise and mask the planned batches."""
        size = (self.preprocessing.height, self.preprocessing.width)
        augment = Augmenter(
            self.augmentation, len(self.train), seed=self.seed, epoch=epoch, size=size
        )
        masks = Masks(self.preprocessing, self.patch, self.config.masked, self.seed, epoch)
        for indices in batches:
            pixels = augment(self.pixels[indices].to(self.device), indices)
            masked = torch.from_numpy(np.stack([masks(int(index)) for index in indices]))
            images = self.preprocessing.normalise(pixels)
            yield MaskedBatch(images, masked.to(self.device), indices)

    def loss(self, model: nn.Module, batch: MaskedBatch) -> Loss:
        """Sum the L1 distance over the pictures, the mean over the hidden pixels of each."""
        device = next(model.parameters()).device
        images, masked = batch.images.to(device), batch.masked.to(device)
        distance = (model(images, masked).float() - patchify(images, self.patch)).abs().mean(dim=2)
        each = (distance * masked).sum(dim=1) / masked.sum(dim=1).clamp(min=1)
        return Loss(each.sum(), float(len(images)), {})

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Measure the L1 distance on the validation pictures, always under the same masks."""
        return {"loss": distance(model, self.valid, self.patch, self.config.masked)}

    def describe(self, batch: MaskedBatch) -> str:
        """Name the pictures."""
        return self.train.describe(batch.indices)


class Masks:
    """Says which patches of an example are hidden: a pure function of (seed, epoch, example)."""

    def __init__(
        self, preprocessing: Preprocessing, patch: int, share: float, seed: int, epoch: int
    ) -> None:
        self.patches = (preprocessing.height // patch) * (preprocessing.width // patch)
        self.count = max(1, round(share * self.patches))
        self.seed, self.epoch = seed, epoch

    def __call__(self, example: int) -> np.ndarray:
        """Return (patch,) boolean."""
        random = generator(self.seed, "mask", self.epoch, example)
        masked = np.zeros(self.patches, dtype=bool)
        masked[random.permutation(self.patches)[: self.count]] = True
        return masked


@torch.inference_mode()
def distance(model: nn.Module, pixels: Pixels, patch: int, share: float) -> float:
    """Return the mean L1 distance on hidden patches of a set; the masks are always the same."""
    device = next(model.parameters()).device
    masks = Masks(pixels.preprocessing, patch, share, seed=0, epoch=0)
    total = 0.0
    for indices in torch.arange(len(pixels.images)).split(ROWS):
        images = pixels.preprocessing.normalise(pixels[indices.numpy()].to(device))
        masked = torch.from_numpy(np.stack([masks(int(index)) for index in indices])).to(device)
        gap = (model(images, masked).float() - patchify(images, patch)).abs().mean(dim=2)
        total += ((gap * masked).sum(dim=1) / masked.sum(dim=1)).sum().item()
    return total / len(pixels.images)
