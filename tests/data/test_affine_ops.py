"""Crops and turns: places worked out by hand, and one resampling for all of them."""

import numpy as np
import pytest
import torch
from torch import Tensor

from manyheads.data.augment.affine_ops import (
    crop_maps,
    identity_maps,
    is_moved,
    operation_maps,
    warp,
)
from manyheads.data.augment.policies import KINDS, Draws, Space

SPACE = Space(shear=1.0, translate=(2.0, 2.0), rotate=90, enhance=0, bits=0)


def ramp(height: int, width: int) -> Tensor:
    """An image whose values say where they are: 10 x row + column."""
    return (10.0 * torch.arange(height)[:, None] + torch.arange(width))[None, None]


def drawn(*layers: tuple[str, float]) -> Draws:
    kinds = np.array([[KINDS.index(name) for name, _ in layers]])
    return Draws(kinds, np.array([[level for _, level in layers]]))


def moved(image: Tensor, *layers: tuple[str, float]) -> Tensor:
    size = (image.shape[2], image.shape[3])
    return warp(image, operation_maps(drawn(*layers), SPACE), size)[0, 0]


def test_the_identity_changes_nothing() -> None:
    """Sampling at the middle of each pixel gives the pixel."""
    torch.testing.assert_close(warp(ramp(4, 6), identity_maps(1), (4, 6)), ramp(4, 6))


def test_translation_by_hand() -> None:
    """Half of the width to the right, half of the height up; what comes in is black."""
    right = moved(ramp(2, 4), ("translate_x", 1.0))
    assert right.round().tolist() == [[0, 0, 0, 1], [0, 0, 10, 11]]
    up = moved(ramp(4, 2), ("translate_y", -1.0))
    assert up.round().tolist() == [[20, 21], [30, 31], [0, 0], [0, 0]]


def test_a_quarter_turn_by_hand() -> None:
    """90 degrees, clockwise: as torch.rot90 of a square."""
    square = ramp(4, 4)
    quarter = moved(square, ("rotate", 1.0))
    torch.testing.assert_close(quarter, square[0, 0].rot90(-1), rtol=0, atol=1e-3)
    torch.testing.assert_close(
        moved(square, ("rotate", -1.0)), square[0, 0].rot90(1), rtol=0, atol=1e-3
    )


def test_shear_by_hand() -> None:
    """A shear of 1 takes each row from one pixel further to the side than the one above it."""
    found = moved(ramp(3, 5), ("shear_x", 1.0)).round()
    assert found.tolist() == [[0, 0, 1, 2, 3], [10, 11, 12, 13, 14], [21, 22, 23, 24, 0]]


def test_two_operations_are_one_after_the_other() -> None:
    """First a turn, then a shift: not the other way round."""
    square = ramp(4, 4)
    turned = moved(square, ("rotate", 1.0))[None, None]
    torch.testing.assert_close(
        moved(square, ("rotate", 1.0), ("translate_x", 0.5)),
        moved(turned, ("translate_x", 0.5)),
        rtol=0,
        atol=1e-3,
    )


def test_only_operations_that_move() -> None:
    """A level of 0, or a change of colours, needs no sampling."""
    kinds = np.array([[KINDS.index(n)] for n in ("rotate", "rotate", "equalize", "identity")])
    assert is_moved(Draws(kinds, np.array([[0.5], [0.0], [1.0], [1.0]]))).tolist() == [
        True,
        False,
        False,
        False,
    ]


def test_crop_by_hand() -> None:
    """The whole area at the model's own shape is the image; the rest follows the draws."""
    middle = np.array([[1.0, 0.5, 0.5, 0.5]])
    torch.testing.assert_close(
        warp(ramp(4, 6), crop_maps(middle, 0.25, (4, 6), (4, 6)), (4, 6)), ramp(4, 6)
    )
    # A quarter of the area, from the upper left corner: 2 x 3 pixels.
    corner = crop_maps(np.array([[0.0, 0.5, 0.0, 0.0]]), 0.25, (4, 6), (2, 3))
    found = warp(ramp(4, 6), corner, (2, 3))
    torch.testing.assert_close(found, ramp(4, 6)[:, :, :2, :3])


@pytest.mark.parametrize("source", [(8, 8), (8, 12), (20, 9)])
def test_crops_lie_inside(source: tuple[int, int]) -> None:
    """Whatever is drawn: no corner of a crop is outside, and its area is what it should be."""
    draws = np.random.default_rng(0).random((500, 4))
    maps = crop_maps(draws, 0.08, source, (6, 6))
    corners = maps @ np.array([[-3, 3], [-3, 3], [1, 1]])
    high, wide = source
    assert np.abs(corners[:, 0]).max() <= wide / 2 + 1e-9
    assert np.abs(corners[:, 1]).max() <= high / 2 + 1e-9
    area = np.prod(corners[:, :2, 1] - corners[:, :2, 0], axis=1) / (high * wide)
    assert area.min() < 0.15
    assert area.max() <= 1 + 1e-9
    if source == (8, 8):
        assert area.max() > 0.9
        assert area.mean() == pytest.approx(0.53, abs=0.03)


@pytest.mark.parametrize(
    ("kind", "place", "entry"),
    [
        ("shear_x", (0, 1), 0.5),
        ("shear_y", (1, 0), 0.5),
        ("translate_x", (0, 2), -1.0),  # the result is read to the left of itself
        ("translate_y", (1, 2), -1.0),
    ],
)
def test_one_number_of_a_map_each(kind: str, place: tuple[int, int], entry: float) -> None:
    """At half of the largest level; everything else is as in the identity."""
    expected = np.eye(3)
    expected[place] = entry
    assert np.allclose(operation_maps(drawn((kind, 0.5)), SPACE)[0], expected)
