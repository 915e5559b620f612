"""The convolution stem: by hand, and for every size."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from manyheads.nn.vision.stem import ConvStem


def test_a_stem_by_hand() -> None:
    """V15: a kernel that is 1 in its middle copies; ReLU cuts -5; pooling takes the largest of 3x3.

    Around (0, 0) the pooling sees 1, 2, 5 and -5; around (0, 2) it sees 2, 3, -5 and 7.
    """
    stem = ConvStem(1, [1])
    convolution = stem.layers[0]
    assert isinstance(convolution, nn.Conv2d)
    convolution.weight.data = torch.zeros(1, 1, 3, 3)
    convolution.weight.data[0, 0, 1, 1] = 1
    image = torch.tensor([[1.0, 2, 3], [5, -5, 7], [-1, -1, -1]]).view(1, 1, 3, 3)
    assert stem(image).tolist() == [[[[5.0, 7.0], [5.0, 7.0]]]]


def test_two_layers_are_what_the_paper_writes() -> None:
    """Equation 3: MaxPool(ReLU(Conv2d(x))), twice."""
    torch.manual_seed(0)
    stem, x = ConvStem(3, [4, 8]), torch.randn(2, 3, 9, 6)
    kernels = [layer.weight for layer in stem.layers if isinstance(layer, nn.Conv2d)]
    for kernel in kernels:
        x_next = F.relu(F.conv2d(x, kernel, padding=1))
        x = F.max_pool2d(x_next, 3, stride=2, padding=1)
    torch.manual_seed(0)
    again, images = ConvStem(3, [4, 8]), torch.randn(2, 3, 9, 6)
    torch.testing.assert_close(again(images), x)


@pytest.mark.parametrize(("height", "width"), [(32, 32), (31, 17), (1, 2)])
def test_each_pooling_halves_and_rounds_up(height: int, width: int) -> None:
    rows, columns = -(-height // 4), -(-width // 4)
    assert ConvStem(3, [4, 8])(torch.randn(1, 3, height, width)).shape == (1, 8, rows, columns)
