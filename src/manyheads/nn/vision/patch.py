"""An image becomes a sequence: N = HW / P^2 patches, each one token (Dosovitskiy et al. 2021, 3.1).

Two forms of the same map: cut, flatten and multiply; or a convolution whose stride is its size.
Patches overlap where the stride is less.
"""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.nn.layers.grid import to_tokens
from manyheads.nn.layers.linear import Linear
from manyheads.nn.recording.tracking import track_conv, track_modules
from manyheads.nn.shapes import Grid, Images, Tokens, check_axes


def patchify(images: Images, size: int) -> Float[Tensor, "batch patch pixel"]:
    """Cut images into size x size patches, row by row, each flattened as (channel, row, column).

    Raises:
        UsageError: the image cannot be cut into whole patches.
    """
    _grid(images, size)  # refuses a rest
    cut = images.unflatten(3, (-1, size)).unflatten(2, (-1, size))  # batch channel row y column x
    return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)


class LinearPatches(nn.Module):
    """Patches by cutting, flattening and one linear map: equation 1 as it is written."""

    def __init__(self, channels: int, size: int, dim: int, *, bias: bool = True) -> None:
        super().__init__()
        self.channels = channels
        self.size = size
        self.project = Linear(channels * size * size, dim, bias=bias)

    def forward(self, images: Images) -> Float[Tensor, "batch patch dim"]:
        """Embed every patch."""
        track_conv(self.size, self.size, grid=_grid(images, self.size))
        return self.project(patchify(images, self.size))


class ConvPatches(LinearPatches):
    """The same map as a size x size convolution with stride size, from the same parameters."""

    def forward(self, images: Images) -> Float[Tensor, "batch patch dim"]:
        """Embed every patch."""
        track_conv(self.size, self.size, grid=_grid(images, self.size))
        kernel = self.project.weight.unflatten(1, (self.channels, self.size, self.size))
        grid = F.conv2d(images, kernel, self.project.bias, stride=self.size)
        return grid.flatten(2).transpose(1, 2)  # batch dim row column -> batch patch dim


class OverlappingPatches(nn.Module):
    """Convolve, and normalise each token (Wu et al. 2021, section 3.1, equation 1)."""

    def __init__(
        self, channels: int, dim: int, *, kernel: int, stride: int, padding: int, eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.project = nn.Conv2d(channels, dim, kernel, stride=stride, padding=padding)
        self.norm = nn.LayerNorm(dim, eps=eps)

    def forward(self, x: Images) -> tuple[Tokens, Grid]:
        """Give the tokens, and the grid they stand on."""
        check_axes(x, "batch channel height width")
        track_modules([self.project])
        tokens, grid = to_tokens(self.project(x))
        return self.norm(tokens), grid


def pad_to_patches(
    images: Images, size: int
) -> Float[Tensor, "batch channel padded_height padded_width"]:
    """Add zeros below and on the right, up to the next whole patch."""
    height, width = images.shape[2:]
    return F.pad(images, (0, -width % size, 0, -height % size))


def _grid(images: Images, size: int) -> Grid:
    check_axes(images, "batch channel height width")
    height, width = images.shape[2:]
    if height % size or width % size:  # a strided convolution would drop the rest silently
        raise UsageError(
            f"An image of {height} x {width} pixels cannot be cut into patches of {size} x {size}: "
            f"resize it to multiples of {size}."
        )
    return height // size, width // size
