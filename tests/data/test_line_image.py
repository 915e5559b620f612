"""Lines as a reader sees them: grey, dark on light, of one height and a whole number of steps."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from manyheads.data.images.line_images import (
    LARGEST,
    PAPER,
    STEP,
    LineImage,
    grey,
    line_pixels,
    padded_width,
    spread_contrast,
    stack,
    to_height,
)


def stripes(paper: int, ink: int) -> np.ndarray:
    """A fifth of the columns in ink."""
    found = np.full((32, 50), paper, dtype=np.uint8)
    found[:, ::5] = ink
    return found


@pytest.mark.parametrize(("paper", "ink"), [(255, 0), (0, 255), (200, 120), (40, 90)])
def test_paper_is_white_and_ink_black(paper: int, ink: int) -> None:
    """Whatever the colours, and which of them is lighter."""
    assert (spread_contrast(stripes(paper, ink)) == stripes(255, 0)).all()


@given(st.integers(0, 255), st.integers(0, 255))
def test_light_on_dark_is_read_as_dark_on_light(paper: int, ink: int) -> None:
    image = stripes(paper, ink)
    assert (spread_contrast(image) == spread_contrast(255 - image)).all()


def test_an_image_of_one_grey_is_paper() -> None:
    assert (spread_contrast(np.full((4, 4), 77, dtype=np.uint8)) == PAPER).all()
    assert (spread_contrast(np.full((1, 1), 0, dtype=np.uint8)) == PAPER).all()


def test_height_changes_and_the_aspect_ratio_stays() -> None:
    assert to_height(np.zeros((64, 100), dtype=np.uint8), 32).shape == (32, 50)
    assert to_height(np.zeros((32, 7), dtype=np.uint8), 32).shape == (32, 7)
    assert to_height(np.zeros((300, 2), dtype=np.uint8), 32).shape == (32, 1)


def test_a_strip_is_no_line() -> None:
    """One pixel high and 30,000 wide would be a million pixels wide."""
    with pytest.raises(ValueError, match="times as wide as high"):
        to_height(np.zeros((1, LARGEST), dtype=np.uint8), 32)


def test_any_image_becomes_grey() -> None:
    """Colours, transparency, numbers of 16 bits, arrays."""
    red = Image.new("RGB", (4, 2), (255, 0, 0))
    assert (grey(red) == 76).all()
    assert (grey(Image.new("RGBA", (4, 2), (0, 0, 0, 0))) == 255).all()
    assert (grey(np.full((2, 4, 1), 256 * 9, dtype=np.uint16)) == 9).all()
    assert grey(np.asarray(red)).shape == (2, 4)
    with pytest.raises(ValueError, match="channels"):
        grey(np.zeros((2, 4, 7), dtype=np.uint8))


def test_lines_are_padded_with_paper_to_whole_steps() -> None:
    """Ink is 1, paper 0, padding too."""
    batch = stack([np.zeros((8, 33), dtype=np.uint8), np.zeros((8, 5), dtype=np.uint8)])
    assert batch.shape == (2, 1, 8, 2 * STEP)
    assert torch.equal(batch[0, 0, 0], torch.cat([torch.ones(33), torch.zeros(31)]))
    assert batch[1].sum() == 8 * 5
    assert stack([np.zeros((8, 5), dtype=np.uint8)], 96).shape[3] == 96


@given(st.integers(0, 10_000))
def test_widths_are_rounded_up(width: int) -> None:
    padded = padded_width(width)
    assert padded % STEP == 0
    assert max(width, 1) <= padded < max(width, 1) + STEP


def test_a_line_from_a_photo() -> None:
    photo = Image.fromarray(np.kron(stripes(30, 220), np.ones((3, 3), dtype=np.uint8)))
    line = line_pixels(photo, LineImage(height=32))
    assert line.shape[0] == 32
    assert line.min() == 0
    assert line.max() == 255
    assert np.median(line) > 200
