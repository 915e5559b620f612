"""Position tables of every kind, found in models by their parts."""

import math

import pytest
import torch
from torch import nn

from manyheads.lens.measures.position_figures import (
    PATCHES,
    along,
    by_distance,
    cosines,
    mosaic,
    position_figures,
)
from manyheads.lens.panels import Curve, Figure, Heat, Lines
from manyheads.models.presets import build
from manyheads.nn.attention.relative import RelativeBias
from manyheads.nn.layers.positions import (
    GridPositions,
    LearnedPositions,
    SinusoidalGridPositions,
    SinusoidalPositions,
)
from tests.small import ALL


def heat(figure: Figure) -> Heat:
    assert isinstance(figure.panel, Heat)
    return figure.panel


def curves(figure: Figure) -> list[Curve]:
    assert isinstance(figure.panel, Lines)
    return figure.panel.curves


def test_sinusoids_by_the_formula() -> None:
    """PE(pos, 2i) = sin(pos / 10000^(2i/4)), the cosine beside it; positions count from 0."""
    table, alike = position_figures(SinusoidalPositions(8, 4), 5)
    assert heat(table).values[3] == [
        round(value, 4) for value in (math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03))
    ]
    assert len(heat(table).values) == 32
    assert heat(table).rows[:2] == ["0", "1"]
    # cos of the difference of each pair's angles, the mean of both pairs.
    (curve,) = curves(alike)
    wanted = [(math.cos(d) + math.cos(d / 100)) / 2 for d in range(256)]
    assert curve.y == pytest.approx(wanted, abs=1e-4)


def test_similarity_by_distance_by_hand() -> None:
    """Three places at 0, 90 and 180 degrees: 0 to a neighbour, -1 two apart."""
    table = torch.tensor([[1.0, 0], [0, 2], [-3, 0]])
    assert by_distance(cosines(table)) == pytest.approx([1, 0, -1])


def test_a_learned_table_ends_where_it_ends() -> None:
    """10 positions of 300 dimensions: all of the first, every third of the second."""
    table, alike = position_figures(LearnedPositions(10, 300), 4)
    assert (len(heat(table).values), len(heat(table).values[0])) == (10, 100)
    assert heat(table).columns[:3] == ["0", "3", "6"]
    assert "every third of 300 dimensions" in table.legend
    assert len(curves(alike)[0].x) == 10


def test_figure_7_of_the_vit_paper() -> None:
    """The tile of a patch holds its similarity with all others, where they stand."""
    torch.manual_seed(0)
    part = GridPositions((2, 3), 1, 8, std=1.0)
    figure, lines = position_figures(nn.Sequential(part))
    alike = cosines(part.table.detach()[1:])  # without the class token
    assert heat(figure).tile == [2, 3]
    for row, column, other_row, other_column in [(0, 0, 0, 0), (1, 2, 0, 1), (0, 1, 1, 0)]:
        found = heat(figure).values[2 * row + other_row][3 * column + other_column]
        wanted = alike[3 * row + column, 3 * other_row + other_column].item()
        assert found == pytest.approx(wanted, abs=0.005)
    in_row, in_column, neither = curves(lines)
    pairs = [alike[3 * row + c, 3 * row + c + 2].item() for row in (0, 1) for c in (0,)]
    assert in_row.y[2] == pytest.approx(sum(pairs) / 2, abs=1e-4)
    below = [alike[c, 3 + c].item() for c in range(3)]
    assert in_column.y[1] == pytest.approx(sum(below) / 3, abs=1e-4)
    assert neither.y[0] == pytest.approx(along(alike, (2, 3))["neither"], abs=1e-4)


def test_similarity_along_rows_and_columns() -> None:
    """A vector for the row and one for the column, beside each other: half is shared."""
    rows, columns = torch.eye(2), torch.eye(2)
    table = torch.cat((rows.repeat_interleave(2, 0), columns.repeat(2, 1)), dim=1)
    found = along(cosines(table), (2, 2))
    assert found == pytest.approx({"same row": 0.5, "same column": 0.5, "neither": 0.0})


def test_the_mosaic_has_each_positions_map_in_its_place() -> None:
    """Position (0, 0) at the upper left, (0, 1) right of it."""
    wanted = [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    assert mosaic(torch.arange(16.0).view(4, 4), (2, 2)).tolist() == wanted


def test_rows_and_columns_show_in_2d_sinusoids() -> None:
    """V7: patches of one row are more alike than any two."""
    _, lines = position_figures(SinusoidalGridPositions((6, 6), 0, 32, std=0.0))
    in_row, in_column, neither = curves(lines)
    assert in_row.y == pytest.approx(in_column.y)
    near, every = in_row.y[1], neither.y[0]
    assert near is not None
    assert every is not None
    assert near > every


def test_a_large_grid_is_thinned() -> None:
    """24 x 24 patches would be 331,776 numbers."""
    figure, _ = position_figures(GridPositions((24, 24), 0, 4, std=1.0))
    assert heat(figure).tile == [12, 12]
    assert PATCHES >= 12 * 12
    assert "every second row and column" in figure.legend


def test_biases_by_distance() -> None:
    """Swin and CoAtNet: the first layer and the last; none in the middle is 0 apart."""
    figures = position_figures(build(ALL["swin-t"]))
    assert [each.panel.title for each in figures] == [
        "Bias for each distance, first layer",
        "Bias for each distance, last layer",
    ]
    assert heat(figures[0]).rows == [str(n) for n in range(-3, 4)]


def test_a_bias_is_drawn_where_the_key_stands() -> None:
    """The table's entry for a key one row below the query stands one row below the middle."""
    model = build(ALL["swin-t"])
    bias = next(part for part in model.modules() if isinstance(part, RelativeBias))
    query, key = 0, bias.grid[1]  # the token below the first
    with torch.no_grad():
        bias.table.zero_()
        bias.table[bias.index[query, key]] = 1.0
    (values, *_) = position_figures(model)
    found = torch.tensor(heat(values).values)
    middle = found.shape[0] // 2, found.shape[1] // 2
    assert found.nonzero().tolist() == [[middle[0] + 1, middle[1]]]


@pytest.mark.parametrize("name", ALL)
def test_every_preset_has_those_it_is_made_of(name: str) -> None:
    """Recurrent and convolutional ones have none."""
    config = ALL[name]
    kind = getattr(config, "positions", None)
    figures = position_figures(build(config), 4)
    without = kind in (None, "none", "rotary") and not any(x in name for x in ("swin", "coatnet"))
    assert bool(figures) != without
