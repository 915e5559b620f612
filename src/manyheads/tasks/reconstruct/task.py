"""Self-supervised learning from images: mask patches and predict their pixels.

SimMIM (Xie et al. 2022): masked patches become a learned token, the encoder reads all tokens, one
linear layer predicts the pixels, and the loss is the L1 distance on the masked patches.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.bounded_numbers import Share
from manyheads.data.batching.batches import Batch
from manyheads.data.images.image_set import Preprocessing
from manyheads.data.images.pixels import ROWS, Pixels
from manyheads.fit.training_images import ImageTrainConfig, TrainingImages
from manyheads.models.vit import Vit
from manyheads.nn.layers.linear import Linear
from manyheads.nn.vision.patch import patchify
from manyheads.streams import generator
from manyheads.train.training_task import Indices, Loss

METRICS = ("loss",)
ENCODER = "vit."  # name prefix of the weights that initialise a classifier


@dataclass(frozen=True, kw_only=True)
class ReconstructTrainConfig(ImageTrainConfig):
    """The [train] table of masked image modelling."""

    masked: Share = 0.6  # share of masked patches (Xie et al. 2022, table 1)


class Reconstructor(nn.Module):
    """A ViT with masked patches, and a linear layer that predicts pixels."""

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
        """Predict the pixels of all patches of normalised images, given the masked (image, patch).

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


@dataclass(frozen=True)
class MaskedBatch(Batch):
    """Normalised images, and the mask of their patches."""

    images: Tensor  # (image, channel, height, width)
    masked: Tensor  # (image, patch)
    indices: np.ndarray

    @property
    def units(self) -> int:
        """The number of images."""
        return len(self.indices)


@dataclass(eq=False)
class ReconstructTask(TrainingImages[ReconstructTrainConfig]):
    """A Task for the training loop."""

    patch: int  # pixels a side

    def load(self, epoch: int, batches: Sequence[Indices]) -> Iterator[MaskedBatch]:
        """Read, augment, normalise and mask the planned batches."""
        drawn = partial(masks, self.preprocessing, self.patch, self.config.masked)
        augment = self.augmenter(epoch)
        for indices in batches:
            pixels = augment(self.pixels[indices].to(self.device), indices)
            images = self.preprocessing.normalise(pixels)
            masked = drawn(indices, seed=self.seed, epoch=epoch).to(self.device)
            yield MaskedBatch(images, masked, indices)

    def loss(self, model: nn.Module, batch: MaskedBatch) -> Loss:
        """Sum the L1 distance over the images: of each the mean over its masked pixels."""
        batch = batch.to(next(model.parameters()).device)
        each = distances(model, batch.images, batch.masked, self.patch)
        return Loss(each.sum(), float(len(each)), {})

    def evaluate(self, model: nn.Module) -> dict[str, float]:
        """Measure the L1 distance on the validation images, always with the same masks."""
        losses = all_distances(model, self.valid_pixels, self.patch, self.config.masked)
        return {"loss": float(losses.mean())}


def masks(
    image: Preprocessing, patch: int, share: float, examples: np.ndarray, *, seed: int, epoch: int
) -> Tensor:
    """Draw the masked patches of examples, (example, patch): each by seed, epoch and its number."""
    patches = (image.height // patch) * (image.width // patch)
    masked = np.zeros((len(examples), patches), dtype=bool)
    for row, example in zip(masked, examples.tolist(), strict=True):
        random = generator(seed, "mask", epoch, example)
        row[random.permutation(patches)[: max(1, round(share * patches))]] = True
    return torch.from_numpy(masked)


def distances(model: nn.Module, images: Tensor, masked: Tensor, patch: int) -> Tensor:
    """Return for each image the mean L1 distance over its masked pixels."""
    gap = (model(images, masked).float() - patchify(images, patch)).abs().mean(dim=2)
    return (gap * masked).sum(dim=1) / masked.sum(dim=1).clamp(min=1)


@torch.inference_mode()
def all_distances(model: nn.Module, pixels: Pixels, patch: int, share: float) -> Tensor:
    """Return the L1 distance on the masked patches of each image, always with the same masks."""
    device = next(model.parameters()).device
    drawn = partial(masks, pixels.preprocessing, patch, share, seed=0, epoch=0)
    each = []
    for indices in torch.arange(len(pixels.images)).split(ROWS):
        images = pixels.preprocessing.normalise(pixels[indices.numpy()].to(device))
        masked = drawn(indices.numpy()).to(device)
        each.append(distances(model, images, masked, patch).double().cpu())
    return torch.cat(each)
