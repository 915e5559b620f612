"""Learned tables whose shape depends on the image size, and how each is interpolated.

`library` names where weights come from ("timm", "hf", "torchvision", "google"; None: trained
here), because libraries interpolate differently.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from manyheads.nn.attention.relative import resize_bias, stretch_bias
from manyheads.nn.layers.positions import ANTIALIASED, resize_grid

Size = tuple[int, int]
Fit = Callable[[Tensor, Size, Size, str | None], Tensor]  # (table, old grid, new grid, library)

POSITIONS = "positions.table"
DISTANCES = "positions.distances.table"

# How each library interpolates positions, where it differs from ours (timm's way is ours). Hugging
# Face uses another bicubic curve than antialiasing does; torchvision keeps the corners where they
# are, and so did Google's spline of order 1.
CURVES: dict[str | None, Mapping[str, Any]] = {
    "hf": {"mode": "bicubic", "align_corners": False},
    "torchvision": {"mode": "bicubic", "align_corners": True},
    "google": {"mode": "bilinear", "align_corners": True},
}
# Only timm's models resize the bias tables of windows; the other libraries keep their windows.
BIASES: dict[str | None, Callable[[Tensor, Size, Size], Tensor]] = {"timm": stretch_bias}


class SizedTable(NamedTuple):
    """The grid that a table was learned for, and how to fit it to another grid."""

    grid: Size
    fit: Fit


def grid_tables(grid: Size, extra: int, *, antialiased: bool = False) -> dict[str, SizedTable]:
    """Describe the position tables of a model with one grid, behind `extra` tokens.

    If `antialiased`, they are interpolated in the same way for every library.
    """

    def fit(table: Tensor, old: Size, new: Size, library: str | None) -> Tensor:
        curve = ANTIALIASED if antialiased else CURVES.get(library, ANTIALIASED)
        return resize_grid(table, old, new, extra, curve)

    distances = SizedTable(grid, lambda table, old, new, _library: resize_bias(table, old, new))
    return {POSITIONS: SizedTable(grid, fit), DISTANCES: distances}


def stage_tables(pattern: str, grids: Sequence[Size]) -> dict[str, SizedTable]:
    """Describe the bias tables of each stage; `pattern` has the stage's number in braces."""

    def fit(table: Tensor, old: Size, new: Size, library: str | None) -> Tensor:
        return BIASES.get(library, resize_bias)(table, old, new)

    return {pattern.format(stage): SizedTable(grid, fit) for stage, grid in enumerate(grids)}
