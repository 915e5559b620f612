"""Receptive field of convolutions: by formula, and measured (Araujo et al. 2019)."""

import math

from torch import Tensor, nn


def receptive_field(layers: int, kernel: int = 3) -> int:
    """Receptive field in pixels of a stack of convolutions with stride 1."""
    return kernel + (kernel - 1) * (layers - 1)


def layers_needed(pixels: int, kernel: int = 3) -> int:
    """The smallest number of convolutions with stride 1 and this receptive field in pixels."""
    return 1 + max(math.ceil((pixels - kernel) / (kernel - 1)), 0)


def measured_field(part: nn.Module, images: Tensor, column: int) -> int:
    """Measured receptive field in a row of an output at `column` of the middle row.

    From the first pixel with a non-zero gradient to the last.
    """
    given = images.clone().requires_grad_()
    found = part(given)
    found[:, :, found.shape[2] // 2, column].sum().backward()
    assert given.grad is not None
    touched = given.grad.abs().sum(dim=(0, 1, 2)).nonzero()
    return int(touched.max() - touched.min()) + 1
