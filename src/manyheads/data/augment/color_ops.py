"""Pillow's colour operations for a batch, with a level per image.

Pixels are (image, channel, height, width) floats from 0 to 255. Pillow rounds to integers; here
only lookup tables of 256 entries do.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.data.augment.policies import KINDS, TONAL, Draws, Space

LUMA = (0.299, 0.587, 0.114)  # ITU-R 601, as Pillow's convert("L")


def apply_tonal(pixels: Tensor, draws: Draws, space: Space) -> Tensor:
    """Apply the drawn tonal operations, layer by layer."""
    pixels = pixels.clone()
    for kinds, levels in zip(draws.kinds.T, draws.levels.T, strict=True):
        for name in TONAL:
            chosen = (kinds == KINDS.index(name)).nonzero()[0]
            if not len(chosen):
                continue
            rows = torch.from_numpy(chosen).to(pixels.device)
            level = torch.from_numpy(levels[chosen]).to(pixels.device, torch.float32)
            changed = _apply(name, pixels[rows], level[:, None, None, None], space)
            pixels.index_copy_(0, rows, changed)
    return pixels


def _apply(name: str, pixels: Tensor, level: Tensor, space: Space) -> Tensor:
    if name in BLENDED:
        other = BLENDED[name](pixels).expand_as(pixels)
        return blend(other, pixels, 1 + space.enhance * level)
    if name == "posterize":
        return posterize(pixels, 8 - (space.bits * level.abs()).round())
    if name == "solarize":
        return solarize(pixels, 256 * (1 - level.abs()))
    if name == "autocontrast":
        return autocontrast(pixels)
    assert name == "equalize"
    return equalize(pixels)


def blend(other: Tensor, pixels: Tensor, factor: Tensor) -> Tensor:
    """Interpolate from `other` (factor 0) to `pixels` (factor 1), or extrapolate."""
    return (other + factor * (pixels - other)).clamp(0, 255)


def grey(pixels: Tensor) -> Tensor:
    """Return one channel: the luma of three channels, the mean of any other number."""
    if pixels.shape[1] != 3:
        return pixels.mean(dim=1, keepdim=True)
    red, green, blue = pixels.split(1, dim=1)
    return LUMA[0] * red + LUMA[1] * green + LUMA[2] * blue


def smooth(pixels: Tensor) -> Tensor:
    """Average 3 x 3 pixels, with weight 5 for the centre; the border is unchanged."""
    if min(pixels.shape[2:]) < 3:
        return pixels
    channels = pixels.shape[1]
    kernel = torch.ones(3, 3, device=pixels.device)
    kernel[1, 1] = 5
    inside = F.conv2d(pixels, (kernel / 13).expand(channels, 1, 3, 3), groups=channels)
    smoothed = pixels.clone()
    smoothed[:, :, 1:-1, 1:-1] = inside
    return smoothed


def posterize(pixels: Tensor, bits: Tensor) -> Tensor:
    """Keep the highest bits of each value."""
    step = 2 ** (8 - bits)
    return (pixels.round() / step).floor() * step


def solarize(pixels: Tensor, threshold: Tensor) -> Tensor:
    """Invert the values at or above the threshold."""
    return torch.where(pixels >= threshold, 255 - pixels, pixels)


def autocontrast(pixels: Tensor) -> Tensor:
    """Stretch each channel to 0 .. 255; a constant channel is unchanged."""
    low, high = pixels.amin((2, 3), keepdim=True), pixels.amax((2, 3), keepdim=True)
    scale = 255 / (high - low)
    return torch.where(high > low, ((pixels - low) * scale).clamp(0, 255), pixels)


def equalize(pixels: Tensor) -> Tensor:
    """Equalise the histogram of each channel."""
    values = pixels.round().long().flatten(2).flatten(0, 1)  # channel of an image, pixel
    counts = torch.zeros(len(values), 256, dtype=torch.long, device=pixels.device)
    counts.scatter_add_(1, values, torch.ones_like(values))
    # The last occupied value does not count towards the step (as in Pillow).
    last = values.amax(dim=1, keepdim=True)
    step = (values.shape[1] - counts.gather(1, last)) // 255
    before = counts.cumsum(dim=1) - counts
    table = ((before + step // 2) // step.clamp(min=1)).clamp(0, 255)
    equalized = table.gather(1, values).view_as(pixels).to(pixels.dtype)
    return torch.where((step > 0).view(*pixels.shape[:2], 1, 1), equalized, pixels)


# What each of these operations blends an image with.
BLENDED: dict[str, Callable[[Tensor], Tensor]] = {
    "brightness": torch.zeros_like,
    "colour": grey,
    "contrast": lambda pixels: grey(pixels).mean(dim=(1, 2, 3), keepdim=True),
    "sharpness": smooth,
}
