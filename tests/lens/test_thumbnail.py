"""What is drawn of a large image."""

import pytest
import torch

from manyheads.lens.thumbnail import thumbnail


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((1024, 700), (1024, 700)),
        ((1025, 41), (1024, 41)),
        ((512, 2048, 3), (256, 1024, 3)),
        ((4096, 4096), (1024, 1024)),
    ],
)
def test_no_side_is_longer_than_1024_pixels(
    shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    """The ratio of the sides stays; what is small enough stays as it is."""
    pixels = torch.zeros(shape, dtype=torch.uint8)
    pixels[: shape[0] // 2] = 200
    small = thumbnail(pixels)
    assert small.shape == expected
    assert torch.equal(small, pixels) == (shape == expected)
    half = expected[0] // 2
    assert small[: half - 4].min() == 200
    assert small[half + 4 :].max() == 0
