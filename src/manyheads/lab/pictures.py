"""Pictures for experiments: part of CIFAR-10's training pictures, and small models for them."""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.app.recipe import ClassifyData
from manyheads.app.sources import find_images
from manyheads.data.augment import Augmentation
from manyheads.data.images import ImageSet, Preprocessing, hold_out
from manyheads.models.resnet import ResNetConfig
from manyheads.models.vit import VitConfig
from manyheads.streams import generator
from manyheads.tasks.classify import ROWS, ClassifyTask, ClassifyTrainConfig, Pixels
from manyheads.train.device import best_device

CIFAR = "cifar10/train-*-of-4.parquet"
COLOURS = Preprocessing(
    height=32, width=32, mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616)
)
PLAIN = Augmentation()
MOVED = Augmentation(shift=4, flip=True)


@lru_cache(maxsize=2)
def cifar(root: str | None, held: int) -> tuple[ImageSet, ImageSet]:
    """Read CIFAR-10's training pictures, and those of them that validation holds out.

    The test pictures stay untouched: experiments are not final measurements.

    Raises:
        NotFoundError: it is not under the data root; the message says how to get it.
    """
    images = find_images(CIFAR, ClassifyData(root=root, train=CIFAR))
    return hold_out(images, held, random_state=0)


def some(images: ImageSet, count: int, seed: int) -> ImageSet:
    """Draw so many pictures; a larger number has those of a smaller one among them."""
    order = generator(seed, "lab pictures").permutation(len(images))
    return images.select(np.sort(order[:count]))


def small_vit(dim: int = 64, layers: int = 4, patch: int = 4) -> VitConfig:
    """A ViT for 32 pixels that a processor trains in a minute or two."""
    return VitConfig(
        height=32,
        width=32,
        patch=patch,
        dim=dim,
        layers=layers,
        heads=max(dim // 16, 1),
        hidden=2 * dim,
        classes=10,
        pool="mean",
        position_std=0.5,
    )


def small_resnet(width: int = 16) -> ResNetConfig:
    """A ResNet for 32 pixels with one block a stage: eight layers (He et al. 2016, 4.2)."""
    widths = (width, 2 * width, 4 * width)
    return ResNetConfig(
        height=32,
        width=32,
        stem="plain",
        stem_width=width,
        block="basic",
        depths=(1, 1, 1),
        widths=widths,
        outputs=widths,
        classes=10,
    )


def training(steps: int, batch_size: int, *, rate: float = 2e-3) -> ClassifyTrainConfig:
    """How every classifier of the lab is trained."""
    return ClassifyTrainConfig(
        steps=steps,
        batch_size=batch_size,
        learning_rate=rate,
        warmup=max(steps // 10, 1),
        weight_decay=0.05,
        log_every=max(steps // 20, 1),
        validate_every=steps,
        save_every=steps,
    )


def classifying(
    train: ImageSet,
    valid: ImageSet,
    config: ClassifyTrainConfig,
    *,
    seed: int,
    augmentation: Augmentation = MOVED,
    preprocessing: Preprocessing = COLOURS,
) -> ClassifyTask:
    """Make the task to name the class of a picture."""
    return ClassifyTask(train, valid, preprocessing, augmentation, config, seed=seed)


def tensors(images: ImageSet, preprocessing: Preprocessing = COLOURS) -> tuple[Tensor, Tensor]:
    """All pictures of a small set as the model sees them, and their classes."""
    pixels = Pixels(images, preprocessing)[np.arange(len(images))]
    device = best_device()
    return preprocessing.normalise(pixels).to(device), torch.from_numpy(images.labels).to(device)


@torch.inference_mode()
def accuracy(model: nn.Module, pictures: Tensor, labels: Tensor) -> float:
    """Share of pictures named right, in percent."""
    return 100 * (named(model, pictures) == labels).double().mean().item()


@torch.inference_mode()
def named(model: nn.Module, pictures: Tensor) -> Tensor:
    """The likeliest class of each picture."""
    model.eval()
    return torch.cat([model(part).argmax(dim=1) for part in pictures.split(ROWS)])
