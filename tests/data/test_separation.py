"""What is held out has no copy in what is trained on."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.data.checks.held_out_images import hold_out_captioned, together
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_set import ImageSet
from manyheads.errors import DataError
from tests.captioned import colour

Texts = Sequence[tuple[str, str]]


def images(colours: Sequence[int], texts: Sequence[Texts]) -> CaptionedImages:
    """A set in memory; colour -1 cannot be read."""
    count = len(colours)

    def read(index: int) -> object:
        if colours[index] < 0:
            raise OSError("gone")
        return colour(colours[index])

    flat = [(n, *each) for n, own in enumerate(texts) for each in own]
    return CaptionedImages(
        ImageSet(np.zeros(count, dtype=int), [], [str(n) for n in range(count)], read),  # type: ignore[arg-type]
        np.array([n for n, *_ in flat], dtype=int),
        [text for *_, text in flat],
        [language for _, language, _ in flat],
    )


def test_what_stays_together() -> None:
    """Equal pixels; all texts of one language; and what is together by way of a third image."""
    found = images(
        [0, 0, 1, 2, 3, 4, 5, -1, -1],
        [
            [("en", "a"), ("de", "x")],
            [("en", "b"), ("de", "y")],  # pixels of 0
            [("en", " B "), ("de", "z")],  # English of 1
            [("en", "c"), ("en", "d")],
            [("en", "D"), ("en", "c"), ("en", "c")],  # the same two texts
            [("en", "c")],  # one of them only
            [("de", "a")],  # another language
            [("en", "e")],  # unreadable images are not equal
            [("en", "f")],
        ],
    )
    assert together(found) == [[0, 1, 2], [3, 4], [5], [6], [7], [8]]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=2, max_size=25),
    st.integers(1, 12),
    st.integers(0, 3),
)
def test_no_copy_on_both_sides(rows: list[tuple[int, int]], count: int, state: int) -> None:
    """Nothing is lost, at most `count` are held out, and the same state holds out the same."""
    found = images([c for c, _ in rows], [[("en", f"text {t}")] for _, t in rows])
    try:
        rest, held = hold_out_captioned(found, count, state)
    except DataError:
        groups = together(found)
        assert len(groups) == 1 or min(map(len, groups)) > count or count >= len(found)
        return
    names = [*rest.images.names, *held.images.names]
    assert sorted(map(int, names)) == list(range(len(rows)))
    assert 1 <= len(held) <= count
    for side in (0, 1):
        parts = [{rows[int(name)][side] for name in part.images.names} for part in (rest, held)]
        assert parts[0].isdisjoint(parts[1])
    again = hold_out_captioned(found, count, state)[1]
    assert again.images.names == held.images.names
    if len({c for c, _ in rows}) == len({t for _, t in rows}) == len(rows):  # no copies
        assert len(held) == count


def test_too_many() -> None:
    """All of them, or a group that does not fit."""
    found = images([0, 1, 2], [[("en", str(n))] for n in range(3)])
    with pytest.raises(DataError, match=r"3 images cannot be held out .* 3 have .*data\.hold_out"):
        hold_out_captioned(found, 3, 0)
    with pytest.raises(DataError, match=r"1 images cannot .*, of which 1 have"):
        hold_out_captioned(images([0, 0], [[("en", "a")], [("en", "b")]]), 1, 0)
