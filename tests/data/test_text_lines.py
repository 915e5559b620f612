"""Drawn lines: a pure function of seed, epoch and example, in fonts that have the characters."""

import string
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyheads.data.synthetic.text_lines import (
    Font,
    RenderedLines,
    Rendering,
    _wavy,
    cut,
    find_fonts,
)
from manyheads.errors import DataError, NotFoundError
from tests.made import write_fonts

TEXTS = ["one two three", "Reading 42 lines.", "x", "a-b: c; d!"] * 8


@pytest.fixture(scope="module")
def fonts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [*find_fonts(write_fonts(tmp_path_factory.mktemp("fonts"))).values()]


def drawn(fonts: list[Path], *, seed: int = 1, **options: float) -> RenderedLines:
    return RenderedLines(TEXTS, fonts, Rendering(**options), height=32, seed=seed)  # type: ignore[arg-type]


def test_the_same_seed_epoch_and_example_give_the_same_pixels(fonts: list[Path]) -> None:
    """In any order, and after other epochs."""
    first, second = drawn(fonts), drawn(fonts)
    wanted = [first.pixels(index, 3) for index in range(len(first))]
    second.pixels(0, 4)
    for index in reversed(range(len(second))):
        assert (second.pixels(index, 3) == wanted[index]).all()


def test_epochs_seeds_and_examples_differ(fonts: list[Path]) -> None:
    lines = drawn(fonts)
    again = [lines.pixels(0, 0), lines.pixels(0, 1), lines.pixels(4, 0)]  # all of one text
    again.append(drawn(fonts, seed=2).pixels(0, 0))
    for number, one in enumerate(again):
        for other in again[:number]:
            assert one.shape != other.shape or (one != other).any()


def test_widths_are_known_before_a_line_is_drawn(fonts: list[Path]) -> None:
    lines = drawn(fonts, distortion=2.0)
    for epoch in (0, 1):
        widths = lines.widths(epoch)
        for index in range(len(lines)):
            pixels = lines.pixels(index, epoch)
            assert pixels.shape == (32, widths[index])
            assert pixels.dtype == np.uint8


def test_without_distortion_ink_is_black_on_white(fonts: list[Path]) -> None:
    lines = drawn(fonts, distortion=0.0)
    for index in range(len(lines)):
        photo = lines.photo(index, 0)
        assert photo.max() == 255
        assert photo.min() < 64
        assert (photo[[0, -1]] == 255).all()  # the font fits in


def test_distortion_darkens_blurs_and_inverts(fonts: list[Path]) -> None:
    lines = drawn(fonts, distortion=1.0)
    papers = [np.median(lines.photo(index, 0)) for index in range(len(lines))]
    assert min(papers) < 100 < 200 < max(papers)


def test_all_fonts_are_used_and_named(fonts: list[Path]) -> None:
    lines = drawn(fonts)
    assert {lines.group(index, 0) for index in range(len(lines))} == {"One", "Two"}
    assert lines.describe(0, 0) == f"'one two three' in {lines.group(0, 0)}"


def test_texts_that_no_font_can_write_are_left_out(fonts: list[Path]) -> None:
    """Pillow's own font has no Hangul; the rest is drawn."""
    lines = RenderedLines(["one", "하나", "two"], fonts, Rendering(), height=32, seed=1)
    assert lines.texts == ["one", "two"]
    assert lines.left_out == 1
    assert lines.missing == ["나", "하"]
    with pytest.raises(DataError, match=r"None of 1 texts can be drawn.*나 하"):
        RenderedLines(["하나"], fonts, Rendering(), height=32, seed=1)


def test_a_font_knows_what_it_lacks(fonts: list[Path]) -> None:
    assert Font(fonts[0]).lacks("aZ9. é한") - {"é"} == {"한"}


def test_a_font_without_small_letters_lacks_them(tmp_path: Path) -> None:
    """Its "a" looks like "A", so a reader could not tell them apart."""
    fonttools = pytest.importorskip("fontTools.ttLib")
    path = write_fonts(tmp_path) / "One.ttf"
    font = fonttools.TTFont(path)
    for table in font["cmap"].tables:
        for letter in string.ascii_lowercase:
            table.cmap[ord(letter)] = table.cmap[ord(letter.upper())]
    font.save(tmp_path / "Capitals.ttf")
    assert Font(tmp_path / "Capitals.ttf").lacks("Ab Zc9") == {"b", "c"}
    assert Font(path).lacks("Ab Zc9") == set()


def test_fonts_of_several_folders_and_patterns(tmp_path: Path) -> None:
    first, second = write_fonts(tmp_path / "first"), write_fonts(tmp_path / "second")
    (second / "Two.ttf").rename(second / "Three.ttf")
    found = find_fonts(first, second / "T*.ttf")
    assert found == {
        "One": first / "One.ttf",
        "Two": first / "Two.ttf",
        "Three": second / "Three.ttf",
    }
    with pytest.raises(NotFoundError, match=r"F\*\.ttf is no folder or pattern"):
        find_fonts(first, second / "F*.ttf")


def test_rules_are_drawn(fonts: list[Path]) -> None:
    """A tenth of the lines is ruled at an edge: a row or a column that is ink all along."""
    lines = RenderedLines(["iii"] * 400, fonts, Rendering(), height=32, seed=1)
    ruled = 0
    for index in range(len(lines)):
        ink = lines.pixels(index, 0) < 128
        ruled += bool((ink.mean(axis=1) > 0.95).any())
    assert 0.03 < ruled / len(lines) < 0.15


def test_uneven_letters_keep_their_ink() -> None:
    """A smooth field moves them by a pixel or two; without one nothing moves."""
    ink = np.zeros((32, 64), dtype=np.float32)
    ink[8:24, 20:44] = 1
    moved = _wavy(ink, np.random.default_rng(0), 0.6)
    assert moved.shape == ink.shape
    assert (moved != ink).any()
    assert abs(moved.sum() / ink.sum() - 1) < 0.15
    assert (moved[:4] == 0).all()
    assert np.array_equal(_wavy(ink, np.random.default_rng(0), 0.0), ink)


def test_missing_fonts_are_answered_with_where_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"is no folder or pattern.*apt install fonts-nanum"):
        find_fonts(tmp_path / "fonts")
    with pytest.raises(NotFoundError, match="has no fonts"):
        find_fonts(tmp_path)
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    with pytest.raises(DataError, match=r"broken\.ttf is not a font"):
        Font(tmp_path / "broken.ttf")


@given(st.text("ab ", max_size=60), st.integers(1, 12))
def test_pieces_are_the_words(text: str, limit: int) -> None:
    """Nothing lost, nothing longer than the limit but single words."""
    pieces = [*cut(text, repeat(limit), 20)]
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
    assert all(0 < len(piece) <= max(limit, 20) for piece in pieces)
    assert all(len(piece) <= limit for piece in pieces if " " in piece)


def test_pieces_are_as_long_as_they_may_be() -> None:
    limits: Iterator[int] = iter([7, 3, 99])
    assert [*cut("one two three four five", limits, 99)] == ["one two", "three", "four five"]
    assert [*cut("abcdefghij", repeat(4), 4)] == ["abcd", "efgh", "ij"]
