"""Cutting images into lines: rows with ink, rows without, and pages that are turned a little."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from manyheads.data.images.line_layout import cut_wide, find_ink, find_lines, find_turn


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
        assert 24 <= line.pixels.shape[0] <= 36
        rows = np.flatnonzero((line.pixels < 128).any(axis=1))
        assert rows[-1] - rows[0] + 1 == 20
    assert [line.paragraph for line in lines] == [0] * 5


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


def test_a_word_too_wide_is_cut_anywhere() -> None:
    pieces = cut_wide(words([500], 0), 200)
    assert not any(spaced for _, spaced in pieces)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=6), st.integers(0, 30))
def test_pieces_are_the_line(widths: list[int], gap: int) -> None:
    line = words(widths, gap) if gap else words([sum(widths)], 0)
    pieces = cut_wide(line, 128)
    assert (np.concatenate([piece for piece, _ in pieces], axis=1) == line).all()
    assert all(0 < piece.shape[1] <= 128 for piece, _ in pieces)
