"""The view model: what there is to see in one prediction, as plain data.

Every surface - plot, terminal, page, report - draws these same numbers with these same legends.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.gates import GateMap, gate_maps
from manyheads.lens.maps import AttentionMap, attention_maps
from manyheads.nn.trace import Trace

Matrix = list[list[float]]
DECIMALS = 4


@dataclass(frozen=True)
class MapView:
    """The heads of one attention over labelled queries (rows) and keys (columns)."""

    site: str  # "decoder layer 4 cross"
    kind: str  # "encoder self", "decoder self", "decoder cross"
    layer: int  # from 1
    legend: str  # of the mean over heads
    head_legends: list[str]
    rows: list[str]
    columns: list[str]
    mean: Matrix
    weights: list[Matrix]  # head, row, column


@dataclass(frozen=True)
class GateView:
    """How far the gates of one direction of a recurrent layer are open at every token."""

    site: str  # "encoder layer 1 backward"
    kind: str  # "encoder forward", "encoder backward", "decoder forward"
    layer: int  # from 1
    legend: str
    tokens: list[str]
    gates: list[str]  # "input", "forget", "output"; "reset", "update"
    mean: Matrix  # token, gate: the mean over units, 0 shut, 1 open


@dataclass(frozen=True)
class TextView:
    """A text that became a text: tokens, probabilities, maps, and gates of recurrent layers.

    Row t of a decoder's map is the step that produces output token t; the columns of its
    self-attention are what it has read by then: the start token and the output before t.
    """

    source: list[str]
    output: list[str]
    probabilities: list[float]  # of each output token, given those before it
    maps: list[MapView]
    gates: list[GateView] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Turn the view into what `json.dumps` takes."""
        return {
            "kind": "text",
            **vars(self),
            "maps": [vars(found) for found in self.maps],
            "gates": [vars(found) for found in self.gates],
        }


@dataclass(frozen=True)
class ClassView:
    """A class and its probability."""

    label: str
    probability: float


@dataclass(frozen=True)
class ImageView:
    """A picture that was given a class: patches, classes and maps.

    Rows and columns of the maps are the class token, if there is one, and then the patches, row by
    row of the grid.
    """

    width: int
    height: int
    boxes: list[list[float]]  # x0, y0, x1, y1 of each patch in the picture
    grid_rows: int
    grid_columns: int
    class_token: bool
    classes: list[ClassView]  # the likeliest first
    maps: list[MapView]

    def over_patches(self, weights: Matrix) -> Matrix:
        """Lay what each patch receives on the grid: from the class token, or the mean of all.

        Args:
            weights: a head or mean of one of the maps.

        Returns:
            grid_rows x grid_columns weights. The class token's own share is left out, so with a
            class token they sum to less than 1.
        """
        queries = [weights[0][1:]] if self.class_token else weights
        received = [sum(column) / len(queries) for column in zip(*queries, strict=True)]
        width = self.grid_columns
        return [received[first : first + width] for first in range(0, len(received), width)]

    def to_json(self) -> dict[str, Any]:
        """Turn the view into what `json.dumps` takes."""
        return {
            "kind": "image",
            **vars(self),
            "classes": [asdict(found) for found in self.classes],
            "maps": [vars(found) for found in self.maps],
        }


def text_view(
    trace: Trace,
    *,
    source: Sequence[str],
    output: Sequence[str],
    probabilities: Sequence[float],
    start: str = "<s>",
) -> TextView:
    """Describe one forward pass of an encoder-decoder over a source and its whole output.

    Args:
        trace: what was recorded.
        source: the tokens that the encoder read.
        output: the tokens that the decoder produced, the last step's included.
        probabilities: of each output token.
        start: the token that the decoder read first, in front of `output[:-1]`.

    Raises:
        UsageError: the tokens do not fit the trace.
    """
    if len(probabilities) != len(output):
        raise UsageError(f"{len(output)} output tokens have {len(probabilities)} probabilities.")
    read = [start, *output[:-1]]
    coordinates = {
        "encoder self": (source, source, "from each source word to the source"),
        "decoder self": (output, read, "from each output word to the words before it"),
        "decoder cross": (output, source, "from each output word to the source"),
    }
    return TextView(
        list(source),
        list(output),
        [round(p, 6) for p in probabilities],
        [_map_view(found, coordinates) for found in attention_maps(trace)],
        [
            _gate_view(found, read if found.site.stack == "decoder" else source)
            for found in gate_maps(trace)
        ],
    )


def image_view(
    trace: Trace,
    *,
    width: int,
    height: int,
    boxes: Sequence[Sequence[float]],
    grid: tuple[int, int],
    classes: Sequence[tuple[str, float]],
    class_token: bool,
) -> ImageView:
    """Describe one forward pass of an encoder over the patches of a picture.

    Args:
        trace: what was recorded.
        width: of the picture that the boxes lie in, in pixels.
        height: of the same.
        boxes: x0, y0, x1, y1 of each patch, row by row of the grid.
        grid: rows and columns of patches.
        classes: labels and probabilities, the likeliest first.
        class_token: whether a class token stands in front of the patches.

    Raises:
        UsageError: the boxes do not fit the grid or the trace.
    """
    rows, columns = grid
    if len(boxes) != rows * columns:
        raise UsageError(f"A grid of {rows} x {columns} patches has {len(boxes)} boxes.")
    patches = [f"patch {row + 1},{column + 1}" for row in range(rows) for column in range(columns)]
    tokens = ["class token", *patches] if class_token else patches
    whose = "from each patch and the class token" if class_token else "from each patch"
    coordinates = {"encoder self": (tokens, tokens, f"{whose} to all of them")}
    return ImageView(
        width,
        height,
        [list(box) for box in boxes],
        rows,
        columns,
        class_token,
        [ClassView(label, round(p, 6)) for label, p in classes],
        [_map_view(found, coordinates) for found in attention_maps(trace)],
    )


def clearest(maps: Iterable[MapView]) -> MapView:
    """Choose the layer whose mean over heads says most about which word looks where.

    Measured by how much the rows differ from their average (generalised Jensen-Shannon
    divergence): zero where every word looks everywhere, and where all look at the same place.
    """

    def information(found: MapView) -> float:
        rows = torch.tensor(found.mean, dtype=torch.float64)
        return float(_entropy(rows.mean(dim=0)) - _entropy(rows).mean())

    return max(maps, key=information)


def _entropy(p: Float[Tensor, "*batch key"]) -> Float[Tensor, "*batch"]:
    return torch.special.entr(p).sum(dim=-1)


def _map_view(
    found: AttentionMap, coordinates: Mapping[str, tuple[Sequence[str], Sequence[str], str]]
) -> MapView:
    site = found.site
    kind = f"{site.stack} {site.kind}".strip()
    if kind not in coordinates:
        known = ", ".join(map(repr, coordinates))
        raise UsageError(f"The trace has a map of kind {kind!r}; there are words only for {known}.")
    rows, columns, what = coordinates[kind]
    if found.weights.shape[1:] != (len(rows), len(columns)):
        queries, keys = found.weights.shape[1:]
        raise UsageError(
            f"The map of {site} has {queries} queries and {keys} keys, but {len(rows)} and "
            f"{len(columns)} labels were given: label every token of the recorded pass."
        )
    whole = bool((found.weights.sum(dim=-1) - 1).abs().max() < 1e-3)
    total = "every row sums to 1" if whole else "rows sum to 1, or to 0 with nothing to attend to"
    place = f"{site.stack} layer {site.layer + 1}"
    mean = f"mean of {found.heads} heads, " if found.heads > 1 else ""
    return MapView(
        site=str(site),
        kind=kind,
        layer=site.layer + 1,
        legend=f"{place}, {mean}attention {what}; {total}",
        head_legends=[
            f"{place}, head {head + 1}, attention {what}; {total}" for head in range(found.heads)
        ],
        rows=list(rows),
        columns=list(columns),
        mean=_rounded(found.mean),
        weights=_rounded(found.weights),
    )


def _gate_view(found: GateMap, tokens: Sequence[str]) -> GateView:
    site = found.site
    units = {name: gate.shape[1] for name, gate in found.gates.items()}
    if any(len(gate) != len(tokens) for gate in found.gates.values()):
        raise UsageError(
            f"The gates of {site} have {len(next(iter(found.gates.values())))} tokens, but "
            f"{len(tokens)} labels were given: label every token of the recorded pass."
        )
    return GateView(
        site=str(site),
        kind=f"{site.stack} {site.kind}".strip(),
        layer=site.layer + 1,
        legend=f"{site}, gates as each token is read, mean of {max(units.values())} units; "
        "0 is shut, 1 is open",
        tokens=list(tokens),
        gates=list(found.gates),
        mean=_rounded(torch.stack([gate.mean(dim=1) for gate in found.gates.values()], dim=1)),
    )


def _rounded(x: Tensor) -> Any:
    # In double precision, so that 0.1234 is printed as 0.1234.
    return x.double().round(decimals=DECIMALS).tolist()
