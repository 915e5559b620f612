"""Augmentation, each picture by itself; the draw is a pure function of (seed, epoch, example)."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from annotated_types import Ge, Gt, Le
from torch import Tensor

from manyheads.data import policies, tones, warp
from manyheads.data.mixing import Erasing, Mixing
from manyheads.data.policies import Policy
from manyheads.streams import generator

Fraction = Annotated[float, Ge(0), Le(1)]


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """The [augment] table: everything is off unless it is asked for."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    # Up to so many pixels in each direction: the same as padding and a random crop.
    shift: Annotated[int, Ge(0)] = 0
    flip: bool = False  # left and right, every second time
    # Random resized crop: the smallest share of the area that it keeps, 1 keeps all.
    resized_crop: Annotated[float, Gt(0), Le(1)] = 1.0
    # How much larger than the model's pictures are those that it crops from.
    oversize: Annotated[float, Ge(1), Le(4)] = 1.0
    policy: Policy = "none"  # "rand": RandAugment; "trivial": TrivialAugment, wide
    # Of RandAugment. The magnitude is a share of the largest: 9 of timm's 10 are 0.9.
    operations: Annotated[int, Ge(1)] = 2
    magnitude: Fraction = 0.5
    magnitude_std: Fraction = 0.0
    erase: Fraction = 0.0  # probability of random erasing
    mixup: Annotated[float, Ge(0)] = 0.0  # alpha
    cutmix: Annotated[float, Ge(0)] = 0.0
    mix: Fraction = 1.0  # share of the pictures that mixup or CutMix get
    mix_epochs: Annotated[int, Ge(0)] = 0  # in which pictures are mixed; 0 is all

    def __post_init__(self) -> None:
        """Refuse two crops at once, and room for a crop that is not made."""
        if self.shift and self.resized_crop < 1:
            raise ValueError(
                f"shift is {self.shift} and resized_crop {self.resized_crop}: both are random "
                "crops, leave one out"
            )
        if self.oversize > 1 and self.resized_crop == 1:
            raise ValueError(
                f"oversize is {self.oversize}, but without resized_crop nothing is cropped from "
                "the larger pictures"
            )

    @property
    def mixes(self) -> bool:
        """Whether pictures are mixed, so that their classes are shares."""
        return (self.mixup > 0 or self.cutmix > 0) and self.mix > 0


class Augmenter:
    """One epoch's draws: a row for every example, whatever batch it comes in.

    Every kind of augmentation has a stream of its own: one more leaves the others' draws alone.
    """

    def __init__(
        self,
        config: Augmentation,
        examples: int,
        *,
        seed: int,
        epoch: int,
        size: tuple[int, int] | None = None,
    ) -> None:
        """Draw.

        Args:
            config: what to do.
            examples: how many pictures there are.
            seed: of the run.
            epoch: of the run.
            size: height and width of the result; those of the pictures if None.
        """
        self.config = config
        self.size = size
        shift = config.shift
        self.shifts = generator(seed, "augmentation", epoch).integers(
            -shift, shift + 1, size=(examples, 2)
        )
        self.flips = generator(seed, "augmentation flip", epoch).random(examples) < (
            0.5 if config.flip else 0.0
        )
        self.crops = (
            generator(seed, "augmentation crop", epoch).random((examples, 4))
            if config.resized_crop < 1
            else None
        )
        self.draws = policies.draw(
            config.policy,
            lambda: generator(seed, "augmentation policy", epoch),
            examples,
            layers=config.operations,
            magnitude=config.magnitude,
            std=config.magnitude_std,
        )
        self.erase = (
            Erasing(generator(seed, "augmentation erase", epoch), examples, config.erase)
            if config.erase
            else None
        )
        self.mixing = (
            Mixing(
                lambda kind: generator(seed, f"augmentation {kind}", epoch),
                examples,
                mixup=config.mixup,
                cutmix=config.cutmix,
                mix=config.mix,
            )
            if config.mixes and (not config.mix_epochs or epoch < config.mix_epochs)
            else None
        )

    def __call__(self, pixels: Tensor, indices: np.ndarray) -> Tensor:
        """Augment a batch of pixels (image, channel, height, width) of these examples.

        The crop comes first, then the policy's operations (those that move pixels in one
        resampling, then those that change colours), then erasing. Values stay within 0..255.
        """
        pixels = self._flip(self._shift(pixels, indices), indices)
        drawn = policies.Draws(self.draws.kinds[indices], self.draws.levels[indices])
        size = self.size or (pixels.shape[2], pixels.shape[3])
        space = policies.space(self.config.policy, size)
        pixels = self._warp(pixels, indices, drawn, space, size)
        if drawn.kinds.shape[1]:
            pixels = tones.change(pixels.float(), drawn, space)
        return pixels if self.erase is None else self.erase(pixels, indices)

    def mix(self, pixels: Tensor, targets: Tensor, indices: np.ndarray) -> tuple[Tensor, Tensor]:
        """Mix augmented pictures, and the shares (image, class) of their classes."""
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
        self,
        pixels: Tensor,
        indices: np.ndarray,
        drawn: policies.Draws,
        space: policies.Space,
        size: tuple[int, int],
    ) -> Tensor:
        maps = warp.operations(drawn, space)
        if self.crops is not None:
            source = (pixels.shape[2], pixels.shape[3])
            first = warp.crops(self.crops[indices], self.config.resized_crop, source, size)
            return warp.warp(pixels, first @ maps, size).clamp(0, 255)
        moved = warp.moves(drawn).nonzero()[0]
        if not len(moved):
            return pixels
        rows = torch.from_numpy(moved).to(pixels.device)
        warped = warp.warp(pixels[rows], maps[moved], size).clamp(0, 255)
        return pixels.float().index_copy(0, rows, warped)
