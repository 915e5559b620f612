"""Position embeddings as figures, and the similarity of positions (atlas T8, V7).

They are found by the modules of `nn/layers/positions.py`, so in converted checkpoints, too.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.lens.described_figures import figure
from manyheads.lens.panels import Curve, Figure
from manyheads.lens.rounding import rounded
from manyheads.nn.attention.relative import RelativeBias, spans
from manyheads.nn.layers import positions

LEAST, MOST = 32, 64  # shown positions of a text
DIMS = 128  # of a heat map: of more, every second, third, ...
DISTANCES = 256  # of a curve
PATCHES = 200  # patches whose similarity with all others is shown


def position_figures(model: nn.Module, tokens: int = 0) -> list[Figure]:
    """Draw every kind of position embedding in a model, for a text of `tokens` tokens."""
    figures: list[Figure] = []
    for part in model.modules():
        if isinstance(part, positions.SinusoidalPositions):
            table = part.formula(max(tokens, DISTANCES), part.table.shape[1])
            figures += _of_text(table, "sinusoidal", tokens)
        elif isinstance(part, positions.LearnedPositions):
            figures += _of_text(part.table.detach().float().cpu(), "learned", tokens)
        elif isinstance(part, positions.GridPositions | positions.SinusoidalGridPositions):
            figures += _of_grid(part)
    figures += _of_biases([part for part in model.modules() if isinstance(part, RelativeBias)])
    return figures


def cosines(table: Float[Tensor, "place dim"]) -> Float[Tensor, "place place"]:
    """Cosine similarity of every two rows."""
    table = F.normalize(table.double(), dim=1)
    return table @ table.T


def along(similar: Float[Tensor, "place place"], grid: tuple[int, int]) -> dict[str, float]:
    """Mean similarity of positions in the same row, in the same column, and in neither."""
    places = torch.arange(grid[0] * grid[1])
    row, column = places // grid[1], places % grid[1]
    same_row, same_column = row[:, None] == row, column[:, None] == column
    groups = {
        "same row": same_row & ~same_column,
        "same column": same_column & ~same_row,
        "neither": ~same_row & ~same_column,
    }
    return {name: similar[mask].mean().item() for name, mask in groups.items()}


def mosaic(
    similar: Float[Tensor, "place place"], grid: tuple[int, int]
) -> Float[Tensor, "all_rows all_columns"]:
    """Arrange the similarity maps of all positions as a grid of tiles (ViT paper, figure 7)."""
    rows, columns = grid
    tiles = similar.view(rows, columns, rows, columns).permute(0, 2, 1, 3)
    return tiles.reshape(rows * rows, columns * columns)


def by_distance(alike: Float[Tensor, "place place"]) -> list[float]:
    """Mean similarity of positions at distance 0, 1, 2, ..."""
    return [round(alike.diagonal(n).mean().item(), 4) for n in range(len(alike))]


def _of_text(table: Float[Tensor, "place dim"], kind: str, tokens: int) -> list[Figure]:
    places = min(max(tokens, LEAST), MOST, len(table))
    step = -(-table.shape[1] // DIMS)
    cut = "" if step == 1 else f" every {_ordinal(step)} of"
    columns = [str(dim) for dim in range(0, table.shape[1], step)]
    if kind == "sinusoidal":
        formula = "PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same"
    else:
        formula = "a learned vector for each position"
    shown = table[:DISTANCES]
    similar = by_distance(cosines(shown))
    dims = table.shape[1]
    return [
        figure(
            "text-positions",
            {"kind": kind, "formula": formula, "cut": cut, "dims": dims, "places": places},
            values=rounded(table[:places, ::step]),
            rows=[str(place) for place in range(places)],
            columns=columns,
            scale=[-1.0, 1.0] if kind == "sinusoidal" else None,
        ),
        figure("position-distance", {"count": len(shown)}, curves=[Curve.over(kind, similar)]),
    ]


def _of_grid(part: positions.GridPositions | positions.SinusoidalGridPositions) -> list[Figure]:
    table = part.table.detach().float().cpu()[part.extra :]
    if len(table) != part.grid[0] * part.grid[1]:
        table = positions.grid_sinusoids(part.grid, 0, table.shape[1])
    grid = table.unflatten(0, part.grid)
    step = 1
    while -(-part.grid[0] // step) * -(-part.grid[1] // step) > PATCHES:
        step += 1
    few = grid[::step, ::step]
    rows, columns = few.shape[:2]
    tiles = mosaic(cosines(few.flatten(0, 1)), (rows, columns))
    cut = "" if step == 1 else f", every {_ordinal(step)} row and column"
    kind = "learned" if isinstance(part, positions.GridPositions) else "sinusoidal"
    # Two decimals: a mosaic has many numbers, and more shades cannot be distinguished.
    values = tiles.round(decimals=2).tolist()
    facts = {"kind": kind, "cut": cut}
    heat = figure("grid-positions", facts, values=values, tile=[rows, columns])
    return [heat, _along(grid, kind)]


def _along(grid: Float[Tensor, "row column dim"], kind: str) -> Figure:
    """Similarity by distance along a row, along a column, and along both."""
    rows, columns, _ = grid.shape
    flat = cosines(grid.flatten(0, 1))
    alike = flat.view(rows, columns, rows, columns)
    curves = []
    same_row = torch.einsum("ijik->jk", alike) / rows
    same_column = torch.einsum("ijkj->ik", alike) / columns
    for name, table in (("in a row", same_row), ("in a column", same_column)):
        curves.append(Curve.over(name, by_distance(table)))
    if min(rows, columns) > 1:
        neither = along(flat, (rows, columns))["neither"]
        ends = [0.0, float(max(rows, columns) - 1)]
        curves.append(Curve("neither row nor column shared", ends, [round(neither, 4)] * 2))
    return figure("along", {"kind": kind}, curves=curves)


def _of_biases(parts: list[RelativeBias]) -> list[Figure]:
    """Learned biases by distance: the mean over heads of the first layer and of the last."""
    figures = []
    for part, which in zip(parts[:1] + parts[1:][-1:], ("first", "last"), strict=False):
        rows, columns = spans(part.grid)
        table = part.table.detach().float().cpu()
        mean = table.mean(dim=1).unflatten(0, (rows, columns))
        # The table is indexed by the position of the query relative to the key.
        heat = figure(
            "bias",
            {"layer": f", {which} layer" if len(parts) > 1 else "", "heads": table.shape[1]},
            values=rounded(mean.flip(0, 1)),
            rows=[str(row - rows // 2) for row in range(rows)],
            columns=[str(column - columns // 2) for column in range(columns)],
        )
        figures.append(heat)
    return figures


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")
