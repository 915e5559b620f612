"""The view model of a classified image: token grids, attention maps, overlays."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.attribution.rollout import rollout, why_not
from manyheads.lens.panels import Figure
from manyheads.lens.rounding import significant
from manyheads.lens.trace.attention_reader import BUDGET, Attention, Groups, attentions, side_limit
from manyheads.lens.trace.grids import Crop, GridView, grid_groups, grid_view, merge, window_boxes
from manyheads.lens.view.text_view import SCHEMA, MapView, Matrix, json_fields, map_view
from manyheads.nn.recording.token_grid import TokenGrid, summary_tokens
from manyheads.nn.recording.trace import Trace

CELLS = 1024  # of an overlay on a separate grid
POOL = "pool"  # the stack of attention pooling, with a learned query


@dataclass(frozen=True)
class ClassView:
    """A class and its probability."""

    label: str
    probability: float
    explained: bool = False  # whether overlays explain this class


@dataclass(frozen=True, eq=False)
class Attribution:
    """The attribution of a prediction: a number for each token of an image."""

    name: str  # "relevance", "grad-cam", "integrated gradients"
    legend: str
    target: str | None  # the explained class; None: independent of the class
    grid: TokenGrid
    values: Float[Tensor, " token"]  # of all tokens, or only of those on the grid
    signed: bool = False  # negative numbers are evidence against the class
    # The aggregation of merged cells, and the scaling of the numbers.
    merged: Literal["sum", "mean"] = "sum"
    scaled: Literal["share", "peak", "as they are"] = "as they are"


@dataclass(frozen=True)
class OverlayView:
    """A number for every cell of a grid over the image."""

    name: str  # "rollout", "relevance", "grad-cam", "integrated gradients"
    legend: str
    target: str | None  # the explained class; None: independent of the class
    grid: int  # index of the view's `grids`
    weights: list[float]  # of each cell, row by row; without tokens that have no position
    signed: bool = False  # negative numbers are evidence against the class


@dataclass(frozen=True)
class ImageView:
    """A classified image: its token grids, classes, maps and overlays."""

    width: int
    height: int
    grids: list[GridView]
    classes: list[ClassView]  # the most likely first; the explained one is included
    maps: list[MapView]  # in the order of computation
    overlays: list[OverlayView] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # remarks, such as about omissions
    figures: list[Figure] = field(default_factory=list)  # figures other than maps

    def readers(self, found: MapView) -> list[int]:
        """Return the rows of a map that the classifier reads: class tokens, or else all patches."""
        extra = [] if found.row_grid is None else self.grids[found.row_grid].extra
        return summary_tokens(extra) or list(range(len(extra), len(found.rows)))

    def received(self, found: MapView, weights: Matrix) -> Matrix:
        """Return the mean attention from the readers to each cell of the grid of the keys.

        Tokens without a position are left out; the sum is less than 1 if there are any. The weights
        are the mean of a map, or those of one head.
        """
        rows = [weights[row] for row in self.readers(found)]
        return self.on_grid(
            found.column_grid, [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        )

    def on_grid(self, grid: int | None, values: Sequence[float]) -> Matrix:
        """Arrange values of cells or tokens on a grid; drop leading tokens without position."""
        assert grid is not None
        view = self.grids[grid]
        laid, across = values[len(values) - view.rows * view.columns :], view.columns
        return [list(laid[first : first + across]) for first in range(0, len(laid), across)]

    def to_json(self) -> dict[str, Any]:
        """Convert the view to JSON types."""
        return {"schema": SCHEMA, "kind": "image", **json_fields(self)}


def image_view(
    trace: Trace,
    *,
    width: int,
    height: int,
    classes: Sequence[tuple[str, float]],
    crop: Crop | None = None,
    attributions: Sequence[Attribution] = (),
    notes: Sequence[str] = (),
    budget: int = BUDGET,
) -> ImageView:
    """Describe one forward pass of a model over an image.

    The trace has the token grids of every model that records them (`nn/recording/tracking.py`).

    Args:
        trace: the recorded trace.
        width: of the image, in pixels.
        height: of the image, in pixels.
        classes: labels and probabilities, the most likely first.
        crop: the part of the image that the model reads; None: all of it.
        attributions: shown as overlays, in addition to attention rollout.
        notes: remarks on them.
        budget: maximum number of weights of all maps; maps of large grids show groups of tokens.

    Raises:
        UsageError: the trace has no attention and there are no attributions, or its attention is
            not over an image.
    """
    found = attentions(trace)
    if not found and not attributions:
        raise UsageError("The trace contains no attention: there is nothing to show.")
    seen = crop or Crop(0, 0, width, height)
    limit = side_limit(found, budget)
    layout = _Layout(seen, limit)
    maps = [_map(each, layout, seen) for each in found]
    layout.limit = max(limit, CELLS)  # a grid without a map costs little
    layers = [each for each in found if each.layer_id.stack != POOL]
    pools = [each for each in found if each.layer_id.stack == POOL]
    reason = why_not(layers) if found else None
    remarks = [] if reason is None else [f"Attention rollout is not defined here: {reason}."]
    if layers and reason is None:
        attributions = [_rollout(layers, pools[0] if pools else None), *attributions]
    overlays = [_overlay(each, layout) for each in attributions]
    explained = {each.target for each in attributions}
    return ImageView(
        width,
        height,
        layout.views,
        [ClassView(label, round(p, 6), label in explained) for label, p in classes],
        maps,
        overlays,
        [*layout.notes(), *remarks, *notes],
    )


class _Layout:
    """The grids of a view: each token grid once, merged to fit the budget."""

    def __init__(self, crop: Crop, limit: int) -> None:
        self.crop = crop
        self.limit = limit
        self.views: list[GridView] = []
        self._known: dict[TokenGrid, int] = {}

    def number(self, grid: TokenGrid) -> int:
        """Return the index of a token grid."""
        if grid not in self._known:
            self._known[grid] = len(self.views)
            self.views.append(grid_view(grid, self.crop, merge(grid, self.limit)))
        return self._known[grid]

    def groups(self, grid: TokenGrid) -> Groups:
        """Return which tokens of a grid are shown as one."""
        return grid_groups(grid, self.views[self.number(grid)].merged)

    def notes(self) -> list[str]:
        """Return notes on boxes and merged tokens."""
        notes = []
        for grid, number in self._known.items():
            view, (rows, columns) = self.views[number], grid.shape
            if view.merged > 1:
                notes.append(
                    f"{rows} x {columns} tokens are shown as {view.rows} x {view.columns}, "
                    f"{view.merged} x {view.merged} each: rows are their mean, columns their sum."
                )
        if any(grid.rows.receptive_field > grid.rows.stride for grid in self._known):
            notes.append("Boxes are approximate: each token also sees its surroundings.")
        return notes


def _map(layer: Attention, layout: _Layout, crop: Crop) -> MapView:
    grid, key_grid = layer.query_grid, layer.key_grid
    pooled = layer.layer_id.stack == POOL
    if key_grid is None or (grid is None and not pooled):
        raise UsageError(
            f"The trace has no image positions for the tokens of {layer.layer_id}: record the "
            "whole model, from pixels on."
        )
    queries = 1 if grid is None else grid.count
    if layer.shape != (queries, key_grid.count):
        raise UsageError(
            f"The map of {layer.layer_id} has {layer.shape[0]} queries and {layer.shape[1]} keys, "
            f"but the image has {queries} and {key_grid.count} tokens: record the whole model, "
            "from pixels on."
        )
    rows = None if grid is None else layout.number(grid)
    columns = layout.number(key_grid)
    partition = layer.partition
    return map_view(
        layer.layer_id,
        layer.merged(
            Groups.of(1) if grid is None else layout.groups(grid), layout.groups(key_grid)
        ),
        rows=["learned query"] if rows is None else layout.views[rows].labels,
        columns=layout.views[columns].labels,
        what=_what(layer, key_grid),
        row_grid=rows,
        column_grid=columns,
        windows=None if partition is None else window_boxes(partition, key_grid, crop),
        partial=partition is not None and partition.padding_attended,
    )


def _what(layer: Attention, key_grid: TokenGrid) -> str:
    """Complete "attention ..." in a legend."""
    if layer.query_grid is None:
        return "from the pool's learned query to each patch"
    whose = " and ".join(["from each patch", *(f"the {name}" for name in layer.query_grid.extra)])
    if layer.partition is not None:
        what = f"{whose} to those in its {layer.partition}"
        if "shifted" in layer.layer_id.kind and "shifted" not in str(layer.partition):
            what += ", not shifted: it covers the grid"
    elif not layer.square:
        what = "{} to {} x {} keys, convolved with a stride".format(whose, *key_grid.shape)
    else:
        what = f"{whose} to all of them"
    # The map of linear attention is never formed.
    implied = layer.layer_id.kind.endswith("(implied)")
    return f"{what}, as linear attention implies it" if implied else what


def _rollout(layers: Sequence[Attention], pool: Attention | None) -> Attribution:
    grid = layers[0].query_grid
    assert grid is not None  # or there were no maps
    start, whence = _start(grid, pool)
    rest = f" with the {' and the '.join(grid.extra)}" if grid.extra else ""
    legend = f"attention rollout through {len(layers)} layers, {whence}; sums to 1{rest}"
    return Attribution("rollout", legend, None, grid, rollout(layers, start))


def _overlay(own: Attribution, layout: _Layout) -> OverlayView:
    """Convert the attribution of tokens to the cells of a grid."""
    number, groups = layout.number(own.grid), layout.groups(own.grid)
    extra = len(own.grid.extra)
    values = own.values[-(own.grid.count - extra) :].float()
    index = groups.index[extra:] - extra
    cells = torch.zeros(groups.count - extra).index_add_(0, index, values)
    if own.merged == "mean":
        cells = cells / torch.bincount(index)
    if own.scaled != "as they are":
        whole = cells.sum() if own.scaled == "share" else cells.max()
        cells = cells / whole if whole > 0 else cells
    return OverlayView(own.name, own.legend, own.target, number, significant(cells), own.signed)


def _start(grid: TokenGrid, pool: Attention | None) -> tuple[Float[Tensor, " token"], str]:
    """Return the start weights of rollout: of the pool, the extra tokens, or all equally."""
    if pool is not None:
        return pool.read_by(torch.ones(1)), "from the pool's learned query"
    start = torch.zeros(grid.count)
    if grid.summaries:
        start[grid.summaries] = 1 / len(grid.summaries)
        return start, "from the " + " and the ".join(grid.extra[i] for i in grid.summaries)
    if grid.extra:
        start[len(grid.extra) :] = 1 / (grid.count - len(grid.extra))
        return start, "from all patches alike"
    return start + 1 / grid.count, "from all tokens alike"
