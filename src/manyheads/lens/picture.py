"""The view model of a picture that was given a class: grids of tokens, maps, overlays."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.grids import Crop, GridView, grid_groups, grid_view, merge, window_boxes
from manyheads.lens.panels import Figure
from manyheads.lens.reading import BUDGET, Attention, Groups, attentions, side_limit
from manyheads.lens.rollout import rollout, why_not
from manyheads.lens.view import SCHEMA, MapView, Matrix, map_view, significant
from manyheads.nn.places import Places
from manyheads.nn.trace import Trace

CELLS = 1024  # of an overlay on a grid of its own
POOL = "pool"  # the stack of what asks the tokens at the end, with a query of its own


@dataclass(frozen=True)
class ClassView:
    """A class and its probability."""

    label: str
    probability: float
    explained: bool = False  # by the overlays that explain a class


@dataclass(frozen=True, eq=False)
class Attribution:
    """A number for each token of a picture that tells what it has to do with the answer."""

    name: str  # "relevance", "grad-cam", "integrated gradients"
    legend: str
    target: str | None  # the class that is explained; None: whatever the answer is
    places: Places
    values: Float[Tensor, " token"]  # of all tokens, or of those on the grid only
    signed: bool = False  # negative numbers speak against
    # What cells that are merged show, and how numbers are scaled: to what is easiest to read.
    merged: Literal["sum", "mean"] = "sum"
    scaled: Literal["share", "peak", "as they are"] = "as they are"


@dataclass(frozen=True)
class OverlayView:
    """A number for every cell of a grid, to be laid over the picture."""

    name: str  # "rollout", "relevance", "grad-cam", "integrated gradients"
    legend: str
    target: str | None  # the class that is explained; None: whatever the answer is
    grid: int  # of the view's `grids`
    weights: list[float]  # of each cell, row by row; tokens that stand nowhere have none
    signed: bool = False  # negative numbers speak against


@dataclass(frozen=True)
class ImageView:
    """A picture that was given a class: its tokens in every stage, classes and maps."""

    width: int
    height: int
    grids: list[GridView]
    classes: list[ClassView]  # the likeliest first; the explained one is among them
    maps: list[MapView]  # in the order in which they ran
    overlays: list[OverlayView] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what one has to know
    figures: list[Figure] = field(default_factory=list)  # what is to see beside maps

    def readers(self, found: MapView) -> list[int]:
        """Say which rows of a map the answer is read from: all, if no token is there for it."""
        extra = 0 if found.row_grid is None else len(self.grids[found.row_grid].extra)
        return list(range(extra or len(found.rows)))

    def received(self, found: MapView, weights: Matrix) -> Matrix:
        """Lay what each place receives on the grid of the keys: from the readers, on average.

        The share of tokens that stand nowhere is left out, so with them the sum is less than 1.

        Args:
            found: one of the maps.
            weights: its mean, or one of its heads.
        """
        rows = [weights[row] for row in self.readers(found)]
        return self.on_grid(
            found.column_grid, [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        )

    def on_grid(self, grid: int | None, values: Sequence[float]) -> Matrix:
        """Lay values on a grid: of its cells, or of its tokens, of which some stand nowhere."""
        assert grid is not None
        found = self.grids[grid]
        laid = values[len(values) - found.rows * found.columns :]
        return [
            list(laid[first : first + found.columns])
            for first in range(0, len(laid), found.columns)
        ]

    def to_json(self) -> dict[str, Any]:
        """Turn the view into what `json.dumps` takes."""
        return {
            "schema": SCHEMA,
            "kind": "image",
            **vars(self),
            "grids": [asdict(found) for found in self.grids],
            "classes": [asdict(found) for found in self.classes],
            "maps": [vars(found) for found in self.maps],
            "figures": [found.to_json() for found in self.figures],
            "overlays": [vars(found) for found in self.overlays],
        }


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
    """Describe one forward pass of a model over a picture.

    Where tokens lie follows from the trace: every model that tells its recorder where it stands
    (see `nn/places.py`) is described.

    Args:
        trace: what was recorded.
        width: of the picture, in pixels.
        height: of the same.
        classes: labels and probabilities, the likeliest first.
        crop: what the model saw of the picture; all of it if None.
        attributions: what explains the answer beside attention rollout, to become overlays.
        notes: what one has to know about them.
        budget: the most weights of all maps together; of large grids they show groups of tokens.

    Raises:
        UsageError: the trace holds no attention, and nothing else is given, or one that no
            picture belongs to.
    """
    found = attentions(trace)
    if not found and not attributions:
        raise UsageError("The trace holds no attention: there is nothing to look at.")
    seen = crop or Crop(0, 0, width, height)
    limit = side_limit(found, budget)
    layout = _Layout(seen, limit)
    maps = [_map(each, layout, seen) for each in found]
    layout.limit = max(limit, CELLS)  # a grid without a map costs little
    layers = [each for each in found if each.site.stack != POOL]
    pools = [each for each in found if each.site.stack == POOL]
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
    """The grids of a view: each set of places once, merged as far as the budget asks for."""

    def __init__(self, crop: Crop, limit: int) -> None:
        self.crop = crop
        self.limit = limit
        self.views: list[GridView] = []
        self._known: dict[Places, int] = {}

    def number(self, places: Places) -> int:
        """Find the grid of these places."""
        if places not in self._known:
            self._known[places] = len(self.views)
            self.views.append(grid_view(places, self.crop, merge(places, self.limit)))
        return self._known[places]

    def groups(self, places: Places) -> Groups:
        """Say which of these tokens are shown as one."""
        return grid_groups(places, self.views[self.number(places)].merged)

    def notes(self) -> list[str]:
        """Say what boxes are, and what was merged."""
        notes = []
        for places, number in self._known.items():
            view, (rows, columns) = self.views[number], places.grid
            if view.merged > 1:
                notes.append(
                    f"{rows} x {columns} tokens are shown as {view.rows} x {view.columns}, "
                    f"{view.merged} x {view.merged} each: rows are their mean, columns their sum."
                )
        if any(places.rows.field > places.rows.step for places in self._known):
            notes.append(
                "A box is what lies nearest to a token's centre; it was made of more around it."
            )
        return notes


def _map(found: Attention, layout: _Layout, crop: Crop) -> MapView:
    places, key_places = found.places, found.key_places
    if places is None or key_places is None:
        raise UsageError(
            f"The trace does not say where the tokens of {found.site} stand in a picture: record "
            "the whole model, from pixels on."
        )
    pooled = found.site.stack == POOL
    queries = 1 if pooled else places.count
    if found.shape != (queries, key_places.count):
        raise UsageError(
            f"The map of {found.site} has {found.shape[0]} queries and {found.shape[1]} keys, but "
            f"{queries} and {key_places.count} tokens stand in the picture: record the whole "
            "model, from pixels on."
        )
    rows = None if pooled else layout.number(places)
    columns = layout.number(key_places)
    return map_view(
        found.site,
        found.merged(Groups.of(1) if pooled else layout.groups(places), layout.groups(key_places)),
        rows=["learned query"] if rows is None else layout.views[rows].labels,
        columns=layout.views[columns].labels,
        what=_what(found, places, key_places),
        row_grid=rows,
        column_grid=columns,
        windows=None if found.windows is None else window_boxes(found.windows, places, crop),
        partial=found.windows is not None and found.windows.padding_attended,
    )


def _what(found: Attention, places: Places, key_places: Places) -> str:
    """Complete "attention ..." in a legend."""
    if found.site.stack == POOL:
        return "from the pool's learned query to each patch"
    whose = " and ".join(["from each patch", *(f"the {name}" for name in places.extra)])
    if found.windows is not None:
        high, wide = found.windows.size
        what = f"{whose} to those in its window of {high} x {wide}"
        if any(found.windows.shift):
            what += ", shifted by {} and {}".format(*found.windows.shift)
        elif "shifted" in found.site.kind:
            what += ", not shifted: it covers the grid"
    elif not found.square:
        what = "{} to {} x {} keys, convolved with a stride".format(whose, *key_places.grid)
    else:
        what = f"{whose} to all of them"
    return f"{what}, as linear attention implies it" if found.implied else what


def _rollout(layers: Sequence[Attention], pool: Attention | None) -> Attribution:
    places = layers[0].places
    assert places is not None  # or there were no maps
    start, whence = _start(places, pool)
    rest = f" with the {' and the '.join(places.extra)}" if places.extra else ""
    legend = f"attention rollout through {len(layers)} layers, {whence}; sums to 1{rest}"
    return Attribution("rollout", legend, None, places, rollout(layers, start))


def _overlay(found: Attribution, layout: _Layout) -> OverlayView:
    """Lay numbers of tokens on the cells of a grid."""
    number, groups = layout.number(found.places), layout.groups(found.places)
    extra = len(found.places.extra)
    values = found.values[-(found.places.count - extra) :].float()
    index = groups.index[extra:] - extra
    cells = torch.zeros(groups.count - extra).index_add_(0, index, values)
    if found.merged == "mean":
        cells = cells / torch.bincount(index)
    if found.scaled != "as they are":
        whole = cells.sum() if found.scaled == "share" else cells.max()
        cells = cells / whole if whole > 0 else cells
    return OverlayView(
        found.name, found.legend, found.target, number, significant(cells), found.signed
    )


def _start(places: Places, pool: Attention | None) -> tuple[Float[Tensor, " token"], str]:
    """Choose what is asked about: what the pool reads, the extra tokens, or all alike."""
    if pool is not None:
        return pool.read_by(torch.ones(1)), "from the pool's learned query"
    start = torch.zeros(places.count)
    if places.extra:
        start[: len(places.extra)] = 1 / len(places.extra)
        return start, "from the " + " and the ".join(places.extra)
    return start + 1 / places.count, "from all tokens alike"
