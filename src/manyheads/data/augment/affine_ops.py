"""Crops, shears, shifts and rotations with parameters per image, in one resampling.

Each operation is an affine map from a position in the result to the position in the source. The
maps are multiplied and the image is sampled once: faster than one operation after the other, and
less blurred. Coordinates are pixels from the image centre: x to the right, y down.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.data.augment.policies import KINDS, Draws, Size, Space


def identity_maps(count: int) -> np.ndarray:
    """Return identity maps: (image, 3, 3)."""
    return np.tile(np.eye(3), (count, 1, 1))


def crop_maps(draws: np.ndarray, smallest: float, source: Size, target: Size) -> np.ndarray:
    """Map a target of (height, width) to a part of the source: Szegedy et al. 2015, section 6.

    Args:
        draws: (image, 4) between 0 and 1: area, aspect ratio, and the two offsets.
        smallest: the crop's share of the source area is between this and 1.
        source: height and width of the source.
        target: height and width of the result; the crop's aspect ratio is 3/4 to 4/3 times its.
    """
    area, aspect, across, down = draws.T
    (high, wide), (height, width) = source, target
    share = smallest + (1 - smallest) * area
    ratio = np.exp(np.log(3 / 4) + (np.log(4 / 3) - np.log(3 / 4)) * aspect) * width / height
    part_width = np.minimum(np.sqrt(share * wide * high * ratio), wide)
    part_height = np.minimum(np.sqrt(share * wide * high / ratio), high)
    maps = identity_maps(len(draws))
    maps[:, 0, 0] = part_width / width
    maps[:, 1, 1] = part_height / height
    maps[:, 0, 2] = (across - 0.5) * (wide - part_width)
    maps[:, 1, 2] = (down - 0.5) * (high - part_height)
    return maps


def operation_maps(draws: Draws, space: Space) -> np.ndarray:
    """Multiply the maps of the geometric operations that were drawn: (image, 3, 3)."""
    across, down = space.translate
    maps = identity_maps(len(draws.kinds))
    for kinds, levels in zip(draws.kinds.T, draws.levels.T, strict=True):
        step = identity_maps(len(kinds))
        for (row, column), name, scale in (
            ((0, 1), "shear_x", space.shear),
            ((1, 0), "shear_y", space.shear),
            ((0, 2), "translate_x", -across),
            ((1, 2), "translate_y", -down),
        ):
            chosen = kinds == KINDS.index(name)
            step[chosen, row, column] = scale * levels[chosen]
        turned = kinds == KINDS.index("rotate")
        angle = np.deg2rad(space.rotate * levels[turned])
        step[turned, 0, 0] = step[turned, 1, 1] = np.cos(angle)
        step[turned, 0, 1] = np.sin(angle)
        step[turned, 1, 0] = -np.sin(angle)
        maps = maps @ step
    return maps


def is_moved(draws: Draws) -> np.ndarray:
    """Return which images are changed geometrically: (image,) boolean."""
    geometric = draws.kinds < KINDS.index("brightness")
    return (geometric & (draws.levels != 0)).any(axis=1)


def warp(pixels: Tensor, maps: np.ndarray, size: Size) -> Tensor:
    """Sample (image, channel, height, width) at the mapped positions; black outside the image."""
    (high, wide), (height, width) = pixels.shape[2:], size
    # From pixels to the coordinates of grid_sample: -1 .. 1 along each side.
    into = np.diag([2 / wide, 2 / high, 1])
    out = np.diag([width / 2, height / 2, 1])
    theta = torch.from_numpy((into @ maps @ out)[:, :2]).to(pixels.device, torch.float32)
    grid = F.affine_grid(theta, [*pixels.shape[:2], *size], align_corners=False)
    return F.grid_sample(pixels.float(), grid, padding_mode="zeros", align_corners=False)
