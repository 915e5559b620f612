"""Augmentation per image; the draw is a pure function of (seed, epoch, example)."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor

from manyheads.data.augment import affine_ops, color_ops, policies
from manyheads.data.augment.mixing import Erasing, Mixing
from manyheads.data.augment.policies import KINDS, Draws, Policy, Size, Space
from manyheads.streams import generator

Fraction = Annotated[float, Ge(0), Le(1)]


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """The [augment] table; by default everything is off."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    # Maximum shift in pixels in each direction: the same as padding and a random crop.
    shift: Annotated[int, Ge(0)] = 0
    flip: bool = False  # horizontally, with probability 1/2
    # Flip, in every second epoch, what the epoch before did not (Jordan 2024, section 3.6).
    alternate: bool = False
    # Random resized crop: the smallest share of the area; 1 turns it off.
    resized_crop: Annotated[float, Gt(0), Le(1)] = 1.0
    # Size of the images before the crop, relative to the model's input size.
    oversize: Annotated[float, Ge(1), Le(4)] = 1.0
    policy: Policy = "none"  # "rand": RandAugment; "trivial": TrivialAugment, wide
    # RandAugment. The magnitude is a share of the maximum: timm's 9 of 10 is 0.9.
    operations: Annotated[int, Ge(1), Le(100)] = 2
    magnitude: Fraction = 0.5
    magnitude_std: Fraction = 0.0
    erase: Fraction = 0.0  # probability of random erasing
    mixup: Annotated[float, Ge(0)] = 0.0  # alpha
    cutmix: Annotated[float, Ge(0)] = 0.0  # alpha
    mix: Fraction = 1.0  # share of the images to mix by mixup or CutMix
    mix_epochs: Annotated[int, Ge(0)] = 0  # number of epochs with mixed images; 0 is all

    def __post_init__(self) -> None:
        """Refuse two random crops, and what changes something that is off."""
        if self.shift and self.resized_crop < 1:
            raise ValueError(
                f"shift is {self.shift} and resized_crop {self.resized_crop}: both are random "
                "crops, leave one out"
            )
        if self.alternate and not self.flip:
            raise ValueError("alternate needs flip: set flip = true, or leave alternate out")
        if self.oversize > 1 and self.resized_crop == 1:
            raise ValueError(
                f"oversize is {self.oversize}, but without resized_crop nothing is cropped from "
                "the larger images"
            )

    @property
    def mixes(self) -> bool:
        """Whether images are mixed, so that their labels are class shares."""
        return (self.mixup > 0 or self.cutmix > 0) and self.mix > 0

    def draw_operations(self, random: np.random.Generator, examples: int) -> Draws:
        """Draw the operations of the policy, in random directions; none for "none".

        "rand": several operations per example, with similar magnitudes. "trivial": one per example,
        at one of 31 strengths.
        """
        shape = (examples, {"rand": self.operations, "trivial": 1, "none": 0}[self.policy])
        kinds = random.integers(len(KINDS), size=shape)
        if self.policy == "rand":
            spread = self.magnitude_std * random.standard_normal(shape)
            strength = np.clip(self.magnitude + spread, 0, 1)
        else:
            strength = random.integers(31, size=shape) / 30
        return Draws(kinds, strength * random.choice([-1.0, 1.0], size=shape))


class Augmenter:
    """The draws of one epoch: a row for every example, independent of batches.

    Every kind of augmentation has its own random stream, so adding one does not change the others.
    """

    def __init__(
        self, config: Augmentation, count: int, *, seed: int, epoch: int, size: Size | None = None
    ) -> None:
        """Draw the parameters of all images; a `size` of None is that of the images."""

        def stream(kind: str, epoch: int = epoch) -> np.random.Generator:
            return generator(seed, f"augmentation {kind}".rstrip(), epoch)

        self.config = config
        self.size = size
        self.shifts = stream("").integers(-config.shift, config.shift + 1, size=(count, 2))
        flips = stream("flip", 0 if config.alternate else epoch).random(count) < 0.5
        self.flips = (flips ^ (config.alternate and epoch % 2 == 1)) & config.flip
        self.crops = stream("crop").random((count, 4)) if config.resized_crop < 1 else None
        self.draws = config.draw_operations(stream("policy"), count)
        self.erase = Erasing(stream("erase"), count, config.erase) if config.erase else None
        self.mixing = None
        if config.mixes and (not config.mix_epochs or epoch < config.mix_epochs):
            self.mixing = Mixing(
                stream, count, mixup=config.mixup, cutmix=config.cutmix, mix=config.mix
            )

    def __call__(self, pixels: Tensor, indices: np.ndarray) -> Tensor:
        """Augment a batch of pixels (image, channel, height, width) of these examples.

        The order is: crop, geometric operations of the policy (one resampling), colour operations,
        erasing. Values stay within 0..255.
        """
        pixels = self._flip(self._shift(pixels, indices), indices)
        drawn = Draws(self.draws.kinds[indices], self.draws.levels[indices])
        size = self.size or (pixels.shape[2], pixels.shape[3])
        space = policies.space(self.config.policy, size)
        pixels = self._warp(pixels, indices, drawn, space, size)
        if drawn.kinds.shape[1]:
            pixels = color_ops.apply_tonal(pixels.float(), drawn, space)
        return pixels if self.erase is None else self.erase(pixels, indices)

    def mix(self, pixels: Tensor, targets: Tensor, indices: np.ndarray) -> tuple[Tensor, Tensor]:
        """Mix augmented images, and their class shares (image, class)."""
        if self.mixing is None:
            return pixels, targets
        return self.mixing(pixels.float(), targets, indices)

    def _shift(self, pixels: Tensor, indices: np.ndarray) -> Tensor:
        shift = self.config.shift
        if not shift:
            return pixels
        device, (height, width) = pixels.device, pixels.shape[2:]
        padded = torch.nn.functional.pad(pixels, (shift,) * 4)
        down, right = torch.from_numpy(self.shifts[indices] + shift).to(device).T
        rows = torch.arange(height, device=device) + down[:, None]
        columns = torch.arange(width, device=device) + right[:, None]
        image = torch.arange(len(pixels), device=device)[:, None, None]
        # Advanced indices around a slice put the channel last: image row column channel.
        return padded[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)

    def _flip(self, pixels: Tensor, indices: np.ndarray) -> Tensor:
        if not self.config.flip:
            return pixels
        flips = torch.from_numpy(self.flips[indices]).to(pixels.device)
        return torch.where(flips[:, None, None, None], pixels.flip(3), pixels)

    def _warp(
        self, pixels: Tensor, indices: np.ndarray, drawn: Draws, space: Space, size: Size
    ) -> Tensor:
        maps = affine_ops.operation_maps(drawn, space)
        if self.crops is not None:
            source, smallest = (pixels.shape[2], pixels.shape[3]), self.config.resized_crop
            first = affine_ops.crop_maps(self.crops[indices], smallest, source, size)
            return affine_ops.warp(pixels, first @ maps, size).clamp(0, 255)
        moved = affine_ops.is_moved(drawn).nonzero()[0]
        if not len(moved):
            return pixels
        rows = torch.from_numpy(moved).to(pixels.device)
        warped = affine_ops.warp(pixels[rows], maps[moved], size).clamp(0, 255)
        return pixels.float().index_copy(0, rows, warped)
