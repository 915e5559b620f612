"""An image becomes a sequence."""

import pytest
import torch

from manyheads.errors import UsageError
from manyheads.nn.vision.patch import ConvPatches, LinearPatches, patchify
from tests.small import randomise


def test_patchify_by_hand() -> None:
    """V1: row by row; a patch is flattened as (channel, row, column)."""
    image = torch.arange(16.0).view(1, 1, 4, 4)
    #  0  1 |  2  3
    #  4  5 |  6  7
    # ------+------
    #  8  9 | 10 11
    # 12 13 | 14 15
    assert patchify(image, 2).tolist() == [
        [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    ]
    two_channels = torch.cat((image, 100 + image), dim=1)
    assert patchify(two_channels, 2)[0, 1].tolist() == [2, 3, 6, 7, 102, 103, 106, 107]


def test_number_of_patches() -> None:
    """V1, E6: 224 / 16 gives 14 x 14 = 196 tokens of 3 * 16 * 16 = 768 values; 256 gives 256."""
    assert patchify(torch.zeros(1, 3, 224, 224), 16).shape == (1, 196, 768)
    assert patchify(torch.zeros(1, 3, 256, 256), 16).shape == (1, 256, 768)


@pytest.mark.parametrize(("height", "width"), [(4, 4), (2, 6), (8, 4)])
def test_linear_and_convolution_are_the_same_map(height: int, width: int) -> None:
    """V1: cut, flatten, multiply = a convolution whose stride is its size; same state dict."""
    linear = randomise(LinearPatches(3, 2, 5))
    conv = ConvPatches(3, 2, 5)
    conv.load_state_dict(linear.state_dict())
    images = torch.randn(2, 3, height, width)
    assert linear(images).shape == (2, height * width // 4, 5)
    torch.testing.assert_close(conv(images), linear(images), atol=1e-5, rtol=0)


def test_gradients_of_both_forms_agree() -> None:
    """V1: they also learn the same."""
    linear = randomise(LinearPatches(3, 2, 5))
    conv = ConvPatches(3, 2, 5)
    conv.load_state_dict(linear.state_dict())
    images, weight = torch.randn(2, 3, 4, 4), torch.randn(2, 4, 5)
    for patches in (linear, conv):
        (patches(images) * weight).sum().backward()
    for left, right in zip(linear.parameters(), conv.parameters(), strict=True):
        assert left.grad is not None
        assert right.grad is not None
        torch.testing.assert_close(left.grad, right.grad, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", [LinearPatches, ConvPatches])
@pytest.mark.parametrize(("height", "width"), [(5, 4), (4, 7)])
def test_a_rest_is_refused(
    kind: type[LinearPatches | ConvPatches], height: int, width: int
) -> None:
    """A strided convolution would drop the rest silently; here both forms say what was given."""
    with pytest.raises(UsageError, match=rf"{height} x {width} pixels .* patches of 2 x 2"):
        kind(3, 2, 5)(torch.zeros(1, 3, height, width))
