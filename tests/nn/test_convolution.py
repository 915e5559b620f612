"""Borders, standardised filters, and the pool of a stem."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from manyheads.nn.vision.convolution import (
    Convolution,
    SamePadding,
    StandardisedConvolution,
    StemPool,
)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


@given(st.integers(1, 20), st.sampled_from([1, 3, 7]), st.sampled_from([1, 2]))
def test_same_padding_gives_every_stride_a_value(length: int, size: int, stride: int) -> None:
    """ceil(length / stride) rows and columns, as TensorFlow defines it."""
    images = torch.ones(1, 2, length, length + 1)
    made = Convolution(2, 3, size, stride=stride, padding="same")(images)
    assert made.shape == (1, 3, -(-length // stride), -(-(length + 1) // stride))


def test_same_padding_by_hand() -> None:
    """4 pixels under 3 x 3 with stride 2 lack one: it is put behind; under 7 x 7 two and three."""
    ones = torch.ones(1, 1, 4, 4)
    assert SamePadding(3, 2)(ones)[0, 0, 1].tolist() == [1, 1, 1, 1, 0]
    assert SamePadding(7, 2)(ones)[0, 0, 3].tolist() == [0, 0, 1, 1, 1, 1, 0, 0, 0]


def test_symmetric_padding_is_torchs() -> None:
    images = torch.randn(2, 3, 7, 9)
    layer = Convolution(3, 4, 3, stride=2)
    close(layer(images), F.conv2d(images, layer.weight, stride=2, padding=1))


def test_a_filter_is_standardised() -> None:
    """Mean 0 and variance 1 over input channels, rows and columns: by hand, (1, 3) is (-1, 1)."""
    layer = StandardisedConvolution(2, 1, 1)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([1.0, 3.0]).view(1, 2, 1, 1))
    close(layer.kernel().flatten(), torch.tensor([-1.0, 1.0]))
    close(layer(torch.tensor([5.0, 7.0]).view(1, 2, 1, 1)).flatten(), torch.tensor([2.0]))


@pytest.mark.parametrize("factor", [0.1, 100.0])
def test_scale_and_shift_of_a_filter_do_not_matter(factor: float) -> None:
    layer, images = StandardisedConvolution(3, 4, 3), torch.randn(2, 3, 5, 5)
    before = layer(images)
    with torch.no_grad():
        layer.weight.mul_(factor).add_(0.5)
    torch.testing.assert_close(layer(images), before, atol=1e-2, rtol=0)


def test_a_stems_pool_has_a_border_of_zeros() -> None:
    """Behind a ReLU that is torch's own; before one, a negative image gets zeros at its border."""
    images = torch.randn(1, 2, 7, 8)
    close(StemPool()(images.relu()), F.max_pool2d(images.relu(), 3, 2, 1))
    pooled = StemPool()(-torch.ones(1, 1, 6, 6))
    assert pooled[0, 0].tolist() == [[0, 0, 0], [0, -1, -1], [0, -1, -1]]
