"""Texts in frames and on buttons: what is within stays, the box goes; other images stay whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

from manyheads.data.images.line_layout import find_lines
from manyheads.data.images.text_box import without_box

FONT = ImageFont.load_default(20)
BOX = (8, 6, 191, 45)


def sheet(text: str, paper: int = 240) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """Write a text in the middle of a sheet of 200 x 52."""
    image = Image.new("L", (200, 52), paper)
    pen = ImageDraw.Draw(image)
    pen.text((100, 26), text, fill=20, font=FONT, anchor="mm")
    return image, pen


@pytest.mark.parametrize("radius", [0, 8, 20])
@pytest.mark.parametrize("thick", [1, 2, 5])
def test_the_text_within_a_frame_stays(radius: int, thick: int) -> None:
    """As dark as without the frame, pixel by pixel."""
    alone, _ = sheet("Stop here")
    framed, pen = sheet("Stop here")
    pen.rounded_rectangle(BOX, radius, outline=30, width=thick)
    inner = without_box(np.asarray(framed))
    assert inner.shape == (40 - 2 * thick, 184 - 2 * thick)
    left, top = BOX[0] + thick, BOX[1] + thick
    wanted = np.asarray(alone)[top : top + inner.shape[0], left : left + inner.shape[1]]
    assert (inner == wanted).all()


@pytest.mark.parametrize("radius", [0, 8, 20])
def test_a_button_is_paper(radius: int) -> None:
    """Light on dark, with the corners in the colour of the button."""
    image = Image.new("L", (200, 52), 250)
    pen = ImageDraw.Draw(image)
    pen.rounded_rectangle(BOX, radius, fill=60)
    pen.text((100, 26), "Pay now", fill=245, font=FONT, anchor="mm")
    inner = without_box(np.asarray(image))
    assert inner.shape[0] == 40
    assert 182 <= inner.shape[1] <= 184
    assert (inner[[0, 0, -1, -1], [0, -1, 0, -1]] == 60).all()
    (line,) = find_lines(np.asarray(image))
    assert np.median(line.pixels) == 60
    assert line.pixels.max() == inner.max() > 200


def test_boxes_within_boxes() -> None:
    image, pen = sheet("Exit")
    pen.rectangle((20, 10, 179, 41), outline=10, width=2)
    pen.rectangle((4, 4, 195, 47), outline=10, width=1)
    assert without_box(np.asarray(image)).shape == (28, 156)


def test_a_frame_at_the_edges_of_the_image() -> None:
    image, pen = sheet("Exit")
    pen.rectangle((0, 0, 199, 51), outline=10, width=3)
    assert without_box(np.asarray(image)).shape == (46, 194)


def test_noise_and_unsharp_edges() -> None:
    """What a camera or a resized screenshot makes of a frame."""
    framed, pen = sheet("Stop here")
    pen.rectangle(BOX, outline=30, width=3)
    noise = np.random.default_rng(0).normal(0, 3, (52, 200))
    small = framed.resize((150, 39), Image.Resampling.BILINEAR).resize((200, 52))
    inner = without_box(np.clip(np.asarray(small) + noise, 0, 255).astype(np.uint8))
    assert abs(inner.shape[0] - 34) <= 4
    assert abs(inner.shape[1] - 178) <= 4


@pytest.mark.parametrize("text", ["O", "0 0", "DO", "[ ]", "EEEE", "TTTT", "Hello", "B", "= = ="])
def test_a_text_without_a_box_stays_whole(text: str) -> None:
    """Round letters and brackets are no boxes."""
    pixels = np.asarray(sheet(text)[0])
    assert without_box(pixels) is pixels


def test_an_empty_box_is_no_text() -> None:
    image, pen = sheet("")
    pen.rectangle(BOX, outline=30, width=2)
    pixels = np.asarray(image)
    assert without_box(pixels) is pixels


def test_a_box_beside_a_text_stays() -> None:
    """Only what holds everything is opened."""
    image, pen = sheet("See")
    pen.rectangle((4, 4, 60, 47), outline=30, width=2)
    pixels = np.asarray(image)
    assert without_box(pixels) is pixels


def boxed(
    size: tuple[int, int], box: tuple[int, int, int, int]
) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """Draw a frame on white."""
    image = Image.new("L", size, 255)
    pen = ImageDraw.Draw(image)
    pen.rectangle(box, outline=0, width=2)
    return image, pen


def unchanged(image: Image.Image) -> bool:
    pixels = np.asarray(image)
    return without_box(pixels) is pixels


def test_a_text_outside_of_a_box_is_not_lost() -> None:
    """A caption below it, and paragraphs above a button that is as wide as the page."""
    image, pen = boxed((400, 200), (10, 10, 389, 139))
    pen.text((40, 60), "Open", fill=0, font=FONT)
    pen.text((180, 160), "Page 7", fill=0, font=FONT)
    assert unchanged(image)
    image = Image.new("L", (400, 300), 255)
    pen = ImageDraw.Draw(image)
    for top in (20, 60, 100):
        pen.text((20, top), "Some words of a text", fill=0, font=FONT)
    pen.rectangle((5, 200, 394, 280), fill=60)
    pen.text((180, 225), "Pay", fill=255, font=FONT)
    assert unchanged(image)


def test_a_text_beside_a_box_with_a_text_is_not_lost() -> None:
    image, pen = sheet("See")
    pen.rectangle((4, 4, 60, 47), outline=30, width=2)
    pen.text((20, 14), "1", fill=20, font=FONT)
    assert unchanged(image)


def test_a_title_bar_is_not_lost() -> None:
    image, pen = boxed((300, 160), (5, 5, 294, 154))
    pen.rectangle((5, 5, 294, 34), fill=40)
    pen.text((20, 8), "Warning", fill=255, font=FONT)
    pen.text((60, 80), "Disk full", fill=0, font=FONT)
    assert unchanged(image)


def test_a_cell_in_a_corner_is_not_lost() -> None:
    image, pen = boxed((400, 140), (5, 5, 394, 134))
    pen.rectangle((5, 5, 65, 40), outline=0, width=2)
    pen.text((14, 10), "12", fill=0, font=FONT)
    pen.text((120, 80), "Some text", fill=0, font=FONT)
    assert unchanged(image)


def test_a_letter_that_touches_the_frame_is_not_lost() -> None:
    image, pen = boxed((220, 60), (10, 10, 209, 40))
    pen.text((60, 22), "Page one", fill=0, font=FONT)
    assert unchanged(image)


def test_a_letter_that_touches_a_side_is_not_lost() -> None:
    """At the left, and in a box that is higher than wide."""
    image, pen = boxed((220, 60), (10, 10, 209, 40))
    pen.text((11, 14), "Tickets", fill=0, font=FONT)
    assert unchanged(image)
    image, pen = boxed((220, 320), (10, 10, 209, 309))
    pen.text((80, 100), "Open", fill=0, font=FONT)
    pen.text((200, 200), "I", fill=0, font=FONT)
    pen.line((203, 208, 209, 208), fill=0, width=3)
    assert unchanged(image)


def test_a_maze_is_no_box() -> None:
    """The search for its paper ends."""
    image, pen = boxed((900, 400), (5, 5, 894, 394))
    for number, x in enumerate(range(10, 890, 4)):
        pen.line((x, 5 + 9 * (number % 2), x, 394 - 9 * (1 - number % 2)), fill=0)
    assert unchanged(image)


def test_a_table_stays_whole() -> None:
    """Its cells are papers of their own: none may be lost."""
    image = Image.new("L", (300, 120), 255)
    pen = ImageDraw.Draw(image)
    for x in range(4):
        pen.line((10 + 90 * x, 10, 10 + 90 * x, 110), fill=0, width=2)
    for y in range(3):
        pen.line((10, 10 + 50 * y, 280, 10 + 50 * y), fill=0, width=2)
    for cell in range(6):
        place = (30 + 90 * (cell % 3), 22 + 50 * (cell // 3))
        pen.text(place, f"c {cell}", fill=0, font=FONT)
    pixels = np.asarray(image)
    assert without_box(pixels) is pixels


def test_a_paragraph_in_a_frame() -> None:
    """All its lines are found, none of the frame."""
    image = Image.new("L", (260, 150), 255)
    pen = ImageDraw.Draw(image)
    pen.rectangle((5, 5, 254, 144), outline=0, width=2)
    for row in range(4):
        pen.text((30, 22 + 28 * row), f"line number {row}", fill=0, font=FONT)
    lines = find_lines(np.asarray(image))
    assert len(lines) == 4
    assert all((line.pixels < 128).mean(axis=1).max() < 0.6 for line in lines)


@given(st.integers(1, 24), st.integers(1, 24), st.integers(0, 255))
def test_paper_alone_has_no_box(height: int, width: int, level: int) -> None:
    pixels = np.full((height, width), level, dtype=np.uint8)
    assert without_box(pixels) is pixels
