"""Pictures made of two: mixup (Zhang et al. 2018), CutMix (Yun et al. 2019), and random erasing.

A picture's partner is the next one in its batch, and the batches are a pure function of seed and
epoch; how much of it is taken is drawn for every picture by itself.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

NOISE = 1 << 16  # values that all erased parts are cut from


class Mixing:
    """One epoch's draws of mixup and CutMix: a row for every example."""

    def __init__(
        self,
        stream: Callable[[str], np.random.Generator],
        examples: int,
        *,
        mixup: float,
        cutmix: float,
        mix: float,
    ) -> None:
        """Draw.

        Args:
            stream: begins one of "mixup", "cutmix", and "mix" in this epoch: without the one the
                other's shares and places are what they were.
            examples: how many there are.
            mixup: alpha of the Beta distribution of the shares; 0 leaves mixup out.
            cutmix: the same for CutMix; with both each gets half of the pictures.
            mix: share of the pictures that are mixed at all.
        """
        chosen, whole = stream("mix").random((2, examples))
        self.cut = chosen < (0.5 if mixup and cutmix else float(cutmix > 0))
        boxes = stream("cutmix")
        self.places = boxes.random((examples, 2))
        # The share that stays of the picture itself.
        self.own = np.where(
            self.cut, _beta(boxes, cutmix, examples), _beta(stream("mixup"), mixup, examples)
        )
        self.own[whole >= mix] = 1.0

    def __call__(
        self, pixels: Tensor, targets: Tensor, indices: np.ndarray
    ) -> tuple[Tensor, Tensor]:
        """Mix a batch with its neighbours.

        Args:
            pixels: (picture, channel, height, width).
            targets: (picture, class) shares.
            indices: which examples these are.
        """
        other = pixels.roll(-1, dims=0)
        height, width = pixels.shape[2:]
        cut, own = self.cut[indices], self.own[indices]
        boxes = _boxes(np.sqrt(1 - own), np.sqrt(1 - own), self.places[indices], (height, width))
        # What was really cut out: a box has whole pixels.
        own = np.where(cut, 1 - _areas(boxes) / (height * width), own)
        shares = torch.from_numpy(own).to(pixels.device, torch.float32)
        inside = _mask(boxes, (height, width), pixels.device)
        mask = torch.where(
            torch.from_numpy(cut).to(pixels.device)[:, None, None],
            1.0 - inside.float(),
            shares[:, None, None],
        )[:, None]
        mixed = torch.lerp(other, pixels, mask)
        partner = targets.roll(-1, dims=0)
        return mixed, partner + shares[:, None].to(targets.device) * (targets - partner)


def _beta(random: np.random.Generator, alpha: float, examples: int) -> np.ndarray:
    """Draw from Beta(alpha, alpha); of alpha 0, which is switched off, ones."""
    return random.beta(alpha, alpha, examples) if alpha else np.ones(examples)


class Erasing:
    """One epoch's draws of random erasing (Zhong et al. 2020): a box of noise in some pictures.

    The noise is the paper's, 0 to 255 a value. Up to a third of the area, and an aspect ratio whose
    logarithm is uniform, are timm's, which the recipes of ViTs go by; the paper's experiments erase
    up to 0.4, with a uniform ratio.
    """

    def __init__(self, random: np.random.Generator, examples: int, probability: float) -> None:
        self.erased = random.random(examples) < probability
        self.areas = random.uniform(0.02, 1 / 3, examples)
        self.ratios = np.exp(random.uniform(np.log(0.3), np.log(1 / 0.3), examples))
        self.places = random.random((examples, 2))
        self.offsets = random.integers(NOISE, size=examples)
        self.noise = random.uniform(0, 255, NOISE).astype(np.float32)

    def __call__(self, pixels: Tensor, indices: np.ndarray) -> Tensor:
        """Erase a part of those pictures of a batch that were drawn."""
        rows = self.erased[indices].nonzero()[0]
        if not len(rows):
            return pixels
        chosen = indices[rows]
        count, (channels, height, width) = len(rows), pixels.shape[1:]
        high = np.minimum(np.sqrt(self.areas[chosen] * self.ratios[chosen] * width / height), 1)
        wide = np.minimum(np.sqrt(self.areas[chosen] / self.ratios[chosen] * height / width), 1)
        boxes = _boxes(high, wide, self.places[chosen], (height, width))
        inside = _mask(boxes, (height, width), pixels.device)[:, None]
        steps = np.arange(channels * height * width)
        noise = self.noise[(self.offsets[chosen, None] + steps) % NOISE]
        filled = torch.from_numpy(noise).to(pixels.device)
        at = torch.from_numpy(rows).to(pixels.device)
        kept = pixels[at].float()
        erased = torch.where(inside, filled.view(count, channels, height, width), kept)
        return pixels.float().index_copy(0, at, erased)


def _boxes(
    high: np.ndarray, wide: np.ndarray, places: np.ndarray, size: tuple[int, int]
) -> np.ndarray:
    """Place boxes of these shares of the sides wholly inside: (picture, top bottom left right)."""
    height, width = size
    tall, broad = np.rint(high * height), np.rint(wide * width)
    top = np.floor(places[:, 0] * (height - tall + 1))
    left = np.floor(places[:, 1] * (width - broad + 1))
    return np.stack((top, top + tall, left, left + broad), axis=1)


def _areas(boxes: np.ndarray) -> np.ndarray:
    return (boxes[:, 1] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 2])


def _mask(boxes: np.ndarray, size: tuple[int, int], device: torch.device) -> Tensor:
    """Mark the pixels of boxes: (picture, height, width) boolean."""
    top, bottom, left, right = torch.from_numpy(boxes).to(device).T[:, :, None]
    rows = torch.arange(size[0], device=device)
    columns = torch.arange(size[1], device=device)
    across = (columns >= left) & (columns < right)
    down = (rows >= top) & (rows < bottom)
    return down[:, :, None] & across[:, None, :]
