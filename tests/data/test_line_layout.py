"""Cutting images into lines: rows with ink, rows without, and pages that are turned a little."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

from manyheads.data.images.line_layout import (
    cut_wide,
    find_bands,
    find_ink,
    find_lines,
    find_turn,
)


def page(
    tops: list[int], *, height: int = 20, size: tuple[int, int] = (240, 400), seed: int = 0
) -> np.ndarray:
    """Lines of random strokes, dark on light, each from its top row."""
    random = np.random.default_rng(seed)
    found = np.full(size, 230, dtype=np.uint8)
    for top in tops:
        for left in range(30, size[1] - 40, 14):
            strokes = random.random((height, 10)) < 0.5
            strokes[[0, -1]] = True  # ink from the first row to the last
            found[top : top + height, left : left + 10][strokes] = 20
    return found


TOPS = [20, 60, 100, 140, 180]


def test_every_line_is_found_in_order() -> None:
    """Each with a margin around its ink, and nothing of its neighbours."""
    image = page(TOPS)
    lines = find_lines(image)
    assert len(lines) == len(TOPS)
    for line in lines:
        # 22% of 20 rows are 4, left on both sides; twice as many columns.
        assert line.pixels.shape == (4 + 20 + 4, 8 + 332 + 8)
        rows = np.flatnonzero((line.pixels < 128).any(axis=1))
        assert (rows[0], rows[-1]) == (4, 23)
    assert [line.paragraph for line in lines] == [0] * 5


def test_a_line_of_small_letters_is_cut_as_high_as_it_would_be() -> None:
    """10 rows of ink where lines have 20: 22% of 15 rows, and half of the 5 that it lacks."""
    image = page([20, 100, 140])
    image[60:70] = page([60])[60:70]
    line = find_lines(image)[1].pixels
    rows = np.flatnonzero((line < 128).any(axis=1))
    assert (len(rows), len(line)) == (10, 10 + 2 * (3 + 2))


# --- Ink ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("depth", "found"), [(21, True), (20, False)])
def test_ink_is_more_than_20_levels_from_the_paper(depth: int, found: bool) -> None:
    image = np.full((60, 60), 200, dtype=np.uint8)
    image[30:33, 30:33] -= np.uint8(depth)
    assert find_ink(image).any() == found


def test_a_speck_is_no_ink() -> None:
    """A pixel of ink touches at least two others."""
    image = np.full((60, 60), 200, dtype=np.uint8)
    image[10, 10:12] = 0
    image[40:42, 40:42] = 0
    assert np.argwhere(find_ink(image)).tolist() == [[40, 40], [40, 41], [41, 40], [41, 41]]


@pytest.mark.parametrize(("share", "found"), [(0.85, True), (0.95, False)])
def test_a_rule_goes_through_nine_tenths_of_a_page(share: float, found: bool) -> None:
    image = page([20, 100, 140, 180])
    image[60:64, : int(share * 400)] = 20
    for turned, ink in ((0, find_ink(image)), (-1, find_ink(np.rot90(image)))):
        assert np.rot90(ink, turned)[60:64].any() == found


@pytest.mark.parametrize(("side", "found"), [(99, True), (100, False)])
def test_a_page_has_100_pixels(side: int, found: bool) -> None:
    """In a smaller image, a stroke from edge to edge is a letter."""
    image = np.full((side, side), 230, dtype=np.uint8)
    image[:, 50:52] = 20
    assert find_ink(image).any() == find_ink(image.T).any() == found


# --- Bands --------------------------------------------------------------------------------------


def rows_of_ink(*heights: int, columns: int = 9) -> np.ndarray:
    """Rows with ink and without, in turn, 100 columns wide; below three usual lines of 20 rows."""
    parts = [np.full((height, 100), n % 2 == 0) for n, height in enumerate((20, 10) * 3 + heights)]
    found = np.concatenate(parts)
    found[:, columns:] = False
    return found


@pytest.mark.parametrize(
    ("heights", "bands"),
    [
        ((1, 6, 18), [(0, 25)]),  # a dot as near as 30% of a line
        ((1, 7, 18), [(8, 26)]),
        ((1, 6, 20), [(0, 27)]),  # together at most 135% of a line
        ((2, 6, 20), [(8, 28)]),
        ((8, 1, 16), [(0, 25)]),  # low is below 45% of a line
        ((9, 1, 16), [(0, 9), (10, 26)]),
        ((3, 9, 20), [(0, 3), (12, 32)]),
        ((2, 9, 20), [(11, 31)]),  # dirt: below 12% of a line
        ((33,), [(0, 33)]),  # one line is less than 170% as high as the others
        ((35,), [(0, 10), (10, 35)]),
    ],
)
def test_runs_of_rows_are_joined_cut_and_left_out(
    heights: tuple[int, ...], bands: list[tuple[int, int]]
) -> None:
    """Heights and gaps in turn, where a line has 20 rows."""
    found = find_bands(rows_of_ink(*heights))
    assert [(band.top - 90, band.bottom - 90) for band in found[3:]] == bands


def test_lines_that_touch_are_cut_where_there_is_least_ink() -> None:
    ink = rows_of_ink(40)
    ink[90 + 18, 2:] = False  # of 18 rows and 21
    assert [(band.top, band.bottom) for band in find_bands(ink)[3:]] == [(90, 108), (108, 130)]


@pytest.mark.parametrize(("pixels", "bands"), [(1, 0), (2, 1)])
def test_a_row_needs_two_thousandths_of_ink(pixels: int, bands: int) -> None:
    ink = np.zeros((40, 1000), dtype=bool)
    ink[10:30, :pixels] = True
    assert len(find_bands(ink)) == bands


@pytest.mark.parametrize("turn", [-3, -1, 1, 2.5])
def test_a_turned_page_is_turned_back(turn: float) -> None:
    turned = np.asarray(Image.fromarray(page(TOPS)).rotate(turn, fillcolor=230))
    assert find_turn(find_ink(turned)) == pytest.approx(-turn, abs=0.3)
    assert len(find_lines(turned)) == len(TOPS)


def test_an_upright_page_stays_as_it_is() -> None:
    assert find_turn(find_ink(page(TOPS))) == 0


def test_light_text_on_dark_and_uneven_light() -> None:
    image = page(TOPS)
    assert len(find_lines(255 - image)) == len(TOPS)
    shade = np.linspace(1, 0.4, image.shape[1])
    assert len(find_lines((image * shade).astype(np.uint8))) == len(TOPS)


def test_noise_makes_no_lines() -> None:
    noise = np.random.default_rng(1).normal(0, 8, (240, 400))
    image = np.clip(page(TOPS) + noise, 0, 255).astype(np.uint8)
    assert len(find_lines(image)) == len(TOPS)


def test_rules_and_edges_are_no_text() -> None:
    """A frame around the page, a line under a heading, and the desk on the left."""
    image = page(TOPS)
    image[[6, 7, 232, 233]] = 20
    image[:, [12, 13, 390]] = 20
    image[50] = 20
    image[:, :6] = 30
    lines = find_lines(image)
    assert len(lines) == len(TOPS)
    assert all(24 <= line.pixels.shape[0] <= 36 for line in lines)


def test_a_wide_gap_begins_a_paragraph() -> None:
    lines = find_lines(page([10, 40, 70, 140, 170, 200]))
    assert [line.paragraph for line in lines] == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("gaps", "paragraphs"),
    [
        ((20, 20, 32), [0, 0, 0, 0]),  # 1.6 times the usual gap
        ((20, 20, 33), [0, 0, 0, 1]),
        ((8, 8, 18), [0, 0, 0, 0]),  # and half a line more than it
        ((8, 8, 19), [0, 0, 0, 1]),
    ],
)
def test_how_wide_a_gap_between_paragraphs_is(gaps: tuple[int, ...], paragraphs: list[int]) -> None:
    tops = np.cumsum([20, *(20 + gap for gap in gaps)]).tolist()
    assert [line.paragraph for line in find_lines(page(tops))] == paragraphs


@pytest.mark.parametrize(("height", "whole"), [(44, True), (46, False)])
def test_how_high_an_image_of_one_line_is(height: int, whole: bool) -> None:
    """At most 2.2 times as high as the ink of its line."""
    image = page([10], size=(height, 300))
    (line,) = find_lines(image)
    assert (line.pixels.shape == image.shape) == whole


def test_an_image_of_one_line_is_that_line() -> None:
    """It is not cropped: readers learned from lines with such margins."""
    image = page([8], size=(36, 300))
    (line,) = find_lines(image)
    assert (line.pixels == image).all()


def test_a_line_in_a_large_image_is_cut_out() -> None:
    (line,) = find_lines(page([100]))
    assert line.pixels.shape[0] < 40


def test_a_large_image_is_analysed_small_and_cut_large() -> None:
    image = np.kron(page(TOPS), np.ones((8, 8), dtype=np.uint8))
    lines = find_lines(image)
    assert len(lines) == len(TOPS)
    assert all(180 < line.pixels.shape[0] < 300 for line in lines)


@pytest.mark.parametrize("shape", [(1, 1), (1, 30_000), (30_000, 1), (3, 3), (50, 50)])
@pytest.mark.parametrize("value", [0, 128, 255])
def test_no_ink_no_lines(shape: tuple[int, int], value: int) -> None:
    assert find_lines(np.full(shape, value, dtype=np.uint8)) == []


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**31))
def test_any_small_image_is_cut_somehow(height: int, width: int, seed: int) -> None:
    image = np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)
    for line in find_lines(image):
        assert 0 < line.pixels.shape[0] <= height
        assert 0 < line.pixels.shape[1] <= width


def words(widths: list[int], gap: int) -> np.ndarray:
    """Prepared words, black, with gaps of paper between."""
    parts = [np.zeros((32, width), dtype=np.uint8) for width in widths]
    paper = np.full((32, gap), 255, dtype=np.uint8)
    return np.concatenate([part for word in parts for part in (word, paper)][:-1], axis=1)


def test_a_wide_line_is_cut_between_words() -> None:
    pieces = cut_wide(words([70, 70, 70, 70], 20), 200)
    assert [spaced for _, spaced in pieces] == [True, False]
    assert pieces[0][0].shape[1] in range(165, 175)  # in the second gap, from 160 to 180


@pytest.mark.parametrize(("gap", "spaced"), [(6, True), (5, False)])
def test_a_space_is_a_fifth_as_wide_as_a_line_is_high(gap: int, spaced: bool) -> None:
    (_, found), _ = cut_wide(words([150, 150], gap), 200)
    assert found == spaced


def test_a_word_too_wide_is_cut_anywhere() -> None:
    pieces = cut_wide(words([500], 0), 200)
    assert not any(spaced for _, spaced in pieces)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=6), st.integers(0, 30))
def test_pieces_are_the_line(widths: list[int], gap: int) -> None:
    line = words(widths, gap) if gap else words([sum(widths)], 0)
    pieces = cut_wide(line, 128)
    assert (np.concatenate([piece for piece, _ in pieces], axis=1) == line).all()
    assert all(0 < piece.shape[1] <= 128 for piece, _ in pieces)


def test_fainter_lines_between_others_are_found() -> None:
    """Grey remarks below a heading in black; spots and a rule as faint are none."""
    image = Image.new("L", (420, 170), 255)
    pen = ImageDraw.Draw(image)
    font = ImageFont.load_default(24)
    for top, text, ink in ((10, "A line in black", 0), (90, "Another line", 0), (50, "grey", 170)):
        pen.text((20, top), text, fill=ink, font=font)
    pen.text((20, 130), "and more of it", fill=190, font=font)
    assert len(find_lines(np.asarray(image))) == 4
    image = Image.new("L", (420, 130), 255)
    pen = ImageDraw.Draw(image)
    for top in (10, 90):
        pen.text((20, top), "A line in black", fill=0, font=font)
    pen.ellipse((200, 52, 222, 74), fill=170)
    pen.line((0, 64, 420, 64), fill=170, width=2)
    assert len(find_lines(np.asarray(image))) == 2


def test_a_letter_by_itself_is_one_line() -> None:
    """Its parts above one another are no lines; two letters above one another are."""
    image = np.full((120, 120), 255, dtype=np.uint8)
    image[34:55, 34:86] = 0
    image[61:90, 34:86] = 0
    assert len(find_lines(image)) == 1
    image[:, 56:64] = 255
    assert len(find_lines(image)) == 2


@pytest.mark.parametrize("text", ["ON\nOFF", "WAY\nOUT"])
def test_two_short_lines_are_two(text: str) -> None:
    image = Image.new("L", (160, 160), 255)
    font = ImageFont.load_default(40)
    ImageDraw.Draw(image).multiline_text((20, 20), text, fill=0, font=font)
    assert len(find_lines(np.asarray(image))) == 2
