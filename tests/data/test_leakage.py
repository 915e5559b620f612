"""What gives answers away: found where it is, and only there."""

import numpy as np
import pytest

from manyheads.data.checks.leakage import (
    contains,
    find_mark,
    in_order,
    name_pattern,
    neighbours,
    predictiveness,
    shared_texts,
)


def test_shared_texts() -> None:
    """Case and spaces make no difference; each validation text counts once."""
    found = shared_texts(["a b", "c", "A  b"], ["x", "A b", "c d"])
    assert [(each.text, each.valid, each.train) for each in found] == [("A b", 1, 0)]


@pytest.mark.parametrize(
    ("source", "target", "has"),
    [
        ("the red house das rote Haus", "Das rote Haus", True),
        ("das rote Haus", "das rote Haus", False),  # a copy is another kind of damage
        ("Bob runs", "Bob", False),  # too short to say anything
        ("the red house", "das rote Haus", False),
    ],
)
def test_a_source_with_its_target(source: str, target: str, has: bool) -> None:
    assert contains(source, target) == has


def noise(count: int, side: int = 6) -> np.ndarray:
    random = np.random.default_rng(0)
    return random.integers(0, 256, (count, 3, side, side)).astype(np.uint8)


LABELS = np.arange(60) % 3


def test_a_stamp_is_found() -> None:
    """Its place, how often it is right, and its brightness for each class."""
    pixels = noise(60)
    pixels[:, :, 5, 0] = (40 * LABELS)[:, None]
    found = find_mark(pixels, LABELS, max_std=4, min_gap=8)
    assert found is not None
    assert (found.row, found.column, found.right, found.values) == (5, 0, 1.0, (0, 40, 80))


def test_content_is_no_stamp() -> None:
    """Noise; a border that is black in all classes; a bright half, which varies."""
    pixels = noise(60)
    pixels[:, :, 0] = 0
    assert find_mark(pixels, LABELS, max_std=4, min_gap=8) is None
    pixels[LABELS == 1, :, :, 3:] //= 3
    assert find_mark(pixels, LABELS, max_std=4, min_gap=8) is None


def test_a_property_that_tells() -> None:
    """Learned on one half and tried on the other, so that values of their own tell nothing."""
    assert predictiveness(["jpg" if label else "png" for label in LABELS % 2], LABELS % 2) == 1.0
    assert predictiveness([str(n) for n in range(60)], LABELS) == 0.0
    assert predictiveness(["jpg"] * 60, np.repeat([0, 1], [50, 10])) == pytest.approx(5 / 6)


def test_names_in_order() -> None:
    """As people count."""
    assert in_order(["a10", "a9", "a1"]) == [2, 1, 0]
    assert name_pattern("cats/IMG_0123_a.jpg") == "IMG_#_a"


def test_neighbours_are_of_one_class() -> None:
    """The training image before it in order, if it has the same class."""
    found = neighbours(
        ["p1", "p2", "p10"], ["p3", "p11", "p0"], (np.array([0, 1, 1]), np.array([0, 1, 0]))
    )
    assert found == [(0, 0), (1, 2)]  # p3 after p1, p11 after p10, nothing before p0
