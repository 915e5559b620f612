"""Mixup (Zhang et al. 2018), CutMix (Yun et al. 2019) and random erasing.

An image is mixed with the next one in its batch; batches are a pure function of seed and epoch.
The mixing ratio is drawn per image.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from manyheads.data.augment.policies import Size

Streams = Callable[[str], np.random.Generator]  # by their names
NOISE = 1 << 16  # noise values; every erased box uses a part of them


class Mixing:
    """The draws of mixup and CutMix of one epoch: a row for every example."""

    def __init__(
        self, stream: Streams, examples: int, *, mixup: float, cutmix: float, mix: float
    ) -> None:
        """Draw the parameters of all images, a share `mix` of which are mixed.

        `stream` returns the generator of "mixup", "cutmix" or "mix" for this epoch: with separate
        streams one method does not change the draws of the other. `mixup` and `cutmix` are the
        alphas of the Beta distributions of the ratios, 0 is off; with both, each gets half of the
        images.
        """
        chosen, whole = stream("mix").random((2, examples))
        self.cut = chosen < (0.5 if mixup and cutmix else float(cutmix > 0))
        boxes = stream("cutmix")
        self.places = boxes.random((examples, 2))
        # The share of the image itself in the mix.
        shares = _beta(boxes, cutmix, examples), _beta(stream("mixup"), mixup, examples)
        self.own = np.where(self.cut, *shares)
        self.own[whole >= mix] = 1.0

    def __call__(
        self, pixels: Tensor, targets: Tensor, indices: np.ndarray
    ) -> tuple[Tensor, Tensor]:
        """Mix each image (channel, height, width), and its class shares, with the next one."""
        other = pixels.roll(-1, dims=0)
        height, width = pixels.shape[2:]
        cut, own = self.cut[indices], self.own[indices]
        boxes = _boxes(np.sqrt(1 - own), np.sqrt(1 - own), self.places[indices], (height, width))
        # The actual area of the box, in whole pixels.
        areas = (boxes[:, 1] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 2])
        own = np.where(cut, 1 - areas / (height * width), own)
        shares = torch.from_numpy(own).to(pixels.device, torch.float32)
        inside = _mask(boxes, (height, width), pixels.device)
        boxed = torch.from_numpy(cut).to(pixels.device)[:, None, None]
        mask = torch.where(boxed, 1.0 - inside.float(), shares[:, None, None])[:, None]
        mixed = torch.lerp(other, pixels, mask)
        partner = targets.roll(-1, dims=0)
        return mixed, partner + shares[:, None].to(targets.device) * (targets - partner)


def _beta(random: np.random.Generator, alpha: float, examples: int) -> np.ndarray:
    """Draw from Beta(alpha, alpha); ones if alpha is 0 (off)."""
    return random.beta(alpha, alpha, examples) if alpha else np.ones(examples)


class Erasing:
    """The draws of random erasing of one epoch (Zhong et al. 2020): a box of noise in some images.

    The noise is uniform in 0..255 per value, as in the paper. An area of up to a third and a
    log-uniform aspect ratio are timm's, used in ViT recipes; the paper erases up to 0.4 of the
    area, with a uniform ratio.
    """

    def __init__(self, random: np.random.Generator, examples: int, probability: float) -> None:
        self.erased = random.random(examples) < probability
        self.areas = random.uniform(0.02, 1 / 3, examples)
        self.ratios = np.exp(random.uniform(np.log(0.3), np.log(1 / 0.3), examples))
        self.places = random.random((examples, 2))
        self.offsets = random.integers(NOISE, size=examples)
        self.noise = random.uniform(0, 255, NOISE).astype(np.float32)

    def __call__(self, pixels: Tensor, indices: np.ndarray) -> Tensor:
        """Erase a box in the drawn images of a batch."""
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


def _boxes(high: np.ndarray, wide: np.ndarray, places: np.ndarray, size: Size) -> np.ndarray:
    """Place boxes of these relative sizes inside the image: (image, top bottom left right)."""
    height, width = size
    tall, broad = np.rint(high * height), np.rint(wide * width)
    top = np.floor(places[:, 0] * (height - tall + 1))
    left = np.floor(places[:, 1] * (width - broad + 1))
    return np.stack((top, top + tall, left, left + broad), axis=1)


def _mask(boxes: np.ndarray, size: Size, device: torch.device) -> Tensor:
    """Mark the pixels of boxes: (image, height, width) boolean."""
    top, bottom, left, right = torch.from_numpy(boxes).to(device).T[:, :, None]
    rows = torch.arange(size[0], device=device)
    columns = torch.arange(size[1], device=device)
    across = (columns >= left) & (columns < right)
    down = (rows >= top) & (rows < bottom)
    return down[:, :, None] & across[:, None, :]
