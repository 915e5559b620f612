"""Augmentation, each picture by itself; the draw is a pure function of (seed, epoch, example)."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor

from manyheads.streams import generator


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """The [augment] table."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    # Up to so many pixels in each direction: the same as padding and a random crop.
    shift: Annotated[int, Ge(0)] = 0
    flip: bool = False  # left and right, every second time


class Augmenter:
    """One epoch's draws: a row for every example, whatever batch it comes in."""

    def __init__(self, config: Augmentation, examples: int, *, seed: int, epoch: int) -> None:
        self.config = config
        random = generator(seed, "augmentation", epoch)
        shift = config.shift
        self.shifts = random.integers(-shift, shift + 1, size=(examples, 2))
        self.flips = random.random(examples) < (0.5 if config.flip else 0.0)

    def __call__(self, pixels: Tensor, indices: np.ndarray) -> Tensor:
        """Augment a batch of pixels (image, channel, height, width) of these examples."""
        shift = self.config.shift
        height, width = pixels.shape[2:]
        if shift:
            padded = torch.nn.functional.pad(pixels, (shift,) * 4)
            down, right = torch.from_numpy(self.shifts[indices] + shift).T
            rows = torch.arange(height) + down[:, None]
            columns = torch.arange(width) + right[:, None]
            image = torch.arange(len(pixels))[:, None, None]
            # Advanced indices around a slice put the channel last: image row column channel.
            pixels = padded[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
        flips = torch.from_numpy(self.flips[indices])
        return torch.where(flips[:, None, None, None], pixels.flip(3), pixels)
