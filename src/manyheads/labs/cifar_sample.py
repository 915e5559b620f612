"""Images for experiments: part of CIFAR-10's training images, and small models for them."""

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from manyheads.data.augment.augment import Augmentation
from manyheads.data.images.image_set import ImageSet, Preprocessing, hold_out
from manyheads.data.images.pixels import ROWS, Pixels
from manyheads.labs import lab_training as learn
from manyheads.models.resnet import ResNetConfig
from manyheads.models.vit import VitConfig
from manyheads.recipe_data.image_data import LabelledImageData
from manyheads.recipe_data.image_splits import find_images
from manyheads.streams import generator
from manyheads.tasks.classify.task import ClassifyTask, ClassifyTrainConfig
from manyheads.train.device import best_device

IMAGES: dict[str, Any] = {"height": 32, "width": 32, "classes": 10}
CIFAR = "cifar10/train-*-of-4.parquet"
COLOURS = Preprocessing(
    height=32, width=32, mean=(0.4914, 0.4822, 0.4465), std=(0.2470, 0.2435, 0.2616)
)
MOVED = Augmentation(shift=4, flip=True)


@lru_cache(maxsize=2)
def cifar(root: str | None, held: int) -> tuple[ImageSet, ImageSet]:
    """Read CIFAR-10's training images, split into training and validation.

    The test images are not used: experiments are not final measurements.

    Raises:
        NotFoundError: CIFAR-10 is not under the data root.
    """
    images = find_images(CIFAR, LabelledImageData(root=root, train=CIFAR))
    return hold_out(images, held, random_state=0)


def some(images: ImageSet, count: int, seed: int) -> ImageSet:
    """Draw `count` images; a larger sample includes a smaller one."""
    order = generator(seed, "lab pictures").permutation(len(images))
    return images.select(np.sort(order[:count]))


def samples(
    root: str | None, held: int, counts: tuple[int, int], seed: int
) -> tuple[ImageSet, ImageSet]:
    """Draw training images by a seed, and validation images that all seeds share."""
    train, valid = cifar(root, held)
    return some(train, counts[0], seed), some(valid, counts[1], 0)


def small_vit(dim: int = 64, layers: int = 4, patch: int = 4) -> VitConfig:
    """A ViT for 32 x 32 pixels that a CPU trains in one or two minutes."""
    sizes = dict[str, Any](dim=dim, layers=layers, heads=max(dim // 16, 1), ffn_dim=2 * dim)
    return VitConfig(patch=patch, pool="mean", position_std=0.5, **sizes, **IMAGES)


def small_resnet(width: int = 16) -> ResNetConfig:
    """A ResNet for 32 x 32 pixels with one block per stage: eight layers (He et al. 2016, 4.2)."""
    widths = (width, 2 * width, 4 * width)
    stages = dict[str, Any](depths=(1, 1, 1), widths=widths, outputs=widths)
    return ResNetConfig(stem="plain", stem_width=width, block="basic", **stages, **IMAGES)


def training(steps: int, batch: int, rate: float = 2e-3, **settings: Any) -> ClassifyTrainConfig:
    """The [train] table of every classifier of the lab."""
    usual = dict[str, Any](lines=20, batch_size=batch, weight_decay=0.05)
    return learn.training(ClassifyTrainConfig, steps, rate, **(usual | settings))


def classifying(
    train: ImageSet,
    valid: ImageSet,
    config: ClassifyTrainConfig,
    *,
    seed: int,
    preprocessing: Preprocessing = COLOURS,
) -> ClassifyTask:
    """Build an image classification task."""
    return ClassifyTask(train, valid, preprocessing, MOVED, config, seed=seed)


def tensors(images: ImageSet, preprocessing: Preprocessing = COLOURS) -> tuple[Tensor, Tensor]:
    """Return all preprocessed images of a small set, and their classes."""
    pixels = Pixels(images, preprocessing)[np.arange(len(images))]
    device = best_device()
    return preprocessing.normalise(pixels).to(device), torch.from_numpy(images.labels).to(device)


def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Classification accuracy in percent."""
    return 100 * (predicted(model, images) == labels).double().mean().item()


@torch.inference_mode()
def predicted(model: nn.Module, images: Tensor) -> Tensor:
    """Return the most likely class of each image."""
    model.eval()
    return torch.cat([model(part).argmax(dim=1) for part in images.split(ROWS)])
