"""Panels of every kind become a PNG, whatever their words are."""

import json
from pathlib import Path

import pytest

from manyheads.lens.panels import (
    Bars,
    Cell,
    Curve,
    Figure,
    Heat,
    Interval,
    Lines,
    Panel,
    Scatter,
    Table,
)
from manyheads.lens.plot.panel_plot import draw, draw_figures
from tests.made import image_size

WORDS = ["고양이", "$x$ and $", "▁a\ufffd"]
LINES = Lines("t", "layer", "y", [Curve("고양이 $", [1, 2], [0.5, None]), Curve("b", [1], [2])])
BARS = Bars("t", "y", WORDS, [Interval(1), Interval(2, 1, 3), Interval(0)])
SQUARE: list[list[float | None]] = [[0.5, -1.0, 0.0], [None, 1.0, 0.25], [0.0, 0.0, 0.0]]
HEAT = Heat("t", "x", "y", SQUARE, WORDS, WORDS, scale=[-1, 1], signed=True)
MOSAIC = Heat("t", "", "", [[0.1] * 4] * 6, numbered=False, tile=[3, 2])
SCATTER = Scatter("t", "1", "2", WORDS, [[0, 0], [1, 0.5], [2, 2]], ["a", "b", "a"])
ROWS: list[list[Cell]] = [["고양이", 0.5], ["$x$ and $", None]] * 9
TABLE = Table("t", ["token", "p"], ROWS)


@pytest.mark.parametrize("panel", [LINES, BARS, HEAT, MOSAIC, SCATTER, TABLE])
def test_each_kind_is_drawn_and_survives_json(panel: Panel | Table, tmp_path: Path) -> None:
    """Hangul, dollar signs that are no formula, gaps, a letter that no font has."""
    figure = Figure("heads", "what it shows, in a sentence about 고양이 that is long", panel)
    draw_figures([figure], tmp_path / "a" / "f.png", title="제목")
    assert min(image_size(tmp_path / "a" / "f.png")) > 300
    plain = figure.to_json()
    assert list(plain)[:3] == ["kind", "group", "legend"]
    assert json.loads(json.dumps(plain)) == plain


def test_several_panels_stand_in_rows(tmp_path: Path) -> None:
    """Five: three in the first row, two in the second; without captions, as the lab draws them."""
    draw([LINES, BARS, HEAT, SCATTER, LINES], tmp_path / "five.png", title="five")
    draw([LINES], tmp_path / "one.png", title="one")
    five, one = (image_size(tmp_path / f"{name}.png") for name in ("five", "one"))
    assert five[0] == pytest.approx(3 * one[0], abs=4)
    assert five[1] > 1.8 * one[1]
