"""Convolutions without bias, as they stand before a norm, and how they treat the image's border."""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.nn.recording.tracking import track_modules
from manyheads.nn.shapes import Grid, Images

Padding = Literal["symmetric", "same"]


class SamePadding(nn.Module):
    """Zeros so that the output has ceil(size / stride) rows and columns, as TensorFlow pads.

    An odd number of zeros puts the one more at the bottom and on the right.
    """

    def __init__(self, size: int, stride: int) -> None:
        super().__init__()
        self.size = size
        self.stride = stride

    def forward(self, x: Images) -> Float[Tensor, "batch channel padded_height padded_width"]:
        """Add what the image's own size asks for."""
        (top, bottom), (left, right) = (self.zeros(length) for length in x.shape[2:])
        return F.pad(x, (left, right, top, bottom))

    def zeros(self, length: int) -> Grid:
        """Count the zeros in front of a side of this length, and behind it."""
        covered = (-(-length // self.stride) - 1) * self.stride + self.size
        zeros = max(covered - length, 0)
        return zeros // 2, zeros - zeros // 2


class Convolution(nn.Conv2d):
    """A convolution without bias; `symmetric` pads size // 2 zeros on every side."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int,
        *,
        stride: int | Grid = 1,
        groups: int = 1,
        padding: Padding = "symmetric",
    ) -> None:
        symmetric = padding == "symmetric"
        super().__init__(
            inputs,
            outputs,
            size,
            stride=stride,
            padding=size // 2 if symmetric else 0,
            groups=groups,
            bias=False,
        )
        self.pad = nn.Identity() if symmetric else SamePadding(size, self.stride[0])

    def kernel(self) -> Float[Tensor, "output input row column"]:
        """Return what images are convolved with."""
        return self.weight

    def forward(self, x: Images) -> Float[Tensor, "batch output rows columns"]:
        """Convolve."""
        return F.conv2d(
            self.pad(x), self.kernel(), None, self.stride, self.padding, groups=self.groups
        )


class StandardisedConvolution(Convolution):
    """Each filter is shifted to mean 0 and scaled to variance 1 first (Qiao et al. 2019, eq. 5).

    With group norm it takes the place of batch norm in BiT (Kolesnikov et al. 2020, section 3).
    """

    eps = 1e-8

    def kernel(self) -> Float[Tensor, "output input row column"]:
        """Standardise every filter."""
        filters = self.weight.flatten(1).float()  # a variance in bf16 would be a poor one
        standard = F.layer_norm(filters, filters.shape[1:], eps=self.eps)
        return standard.view_as(self.weight).to(self.weight.dtype)


# What blocks build their parts with: Convolution or another with its arguments, and a norm for a
# number of channels.
ConvolutionFactory = Callable[..., Convolution]
NormFactory = Callable[[int], nn.Module]


class NormedConvolution(nn.Module):
    """A convolution and the norm behind it."""

    def __init__(self, convolution: Convolution, norm: nn.Module) -> None:
        super().__init__()
        self.convolution = convolution
        self.norm = norm

    def forward(self, x: Images) -> Float[Tensor, "batch output rows columns"]:
        """Convolve, then normalise."""
        return self.norm(self.convolution(x))


class StemPool(nn.Module):
    """The largest value in windows of 3 x 3, every second one: the end of a ResNet's stem.

    The border is zeros. Behind a ReLU that is the same as no border at all; before one it is not.
    """

    kernel_size, stride, padding = 3, 2, 1

    def __init__(self, padding: Padding = "symmetric") -> None:
        super().__init__()
        self.pad = nn.ZeroPad2d(1) if padding == "symmetric" else SamePadding(3, 2)

    def forward(self, x: Images) -> Float[Tensor, "batch channel rows columns"]:
        """Halve height and width."""
        track_modules([self])
        return F.max_pool2d(self.pad(x), self.kernel_size, self.stride)


def initialise(module: nn.Module) -> None:
    """Draw the filters in a module for ReLU (He et al. 2015, eq. 10, counting outputs)."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
            if part.bias is not None:
                nn.init.zeros_(part.bias)


def check_halvings(height: int, width: int, halvings: int, *, border: int = 0) -> None:
    """Refuse an image that is too small to be halved so often, once it has lost its border.

    Raises:
        UsageError: nothing would be left.
    """
    least = 2**halvings + border
    if min(height, width) < least:
        raise UsageError(
            f"An image of {height} x {width} pixels cannot be halved {halvings} times: it must "
            f"be at least {least} x {least}."
        )
