"""The view model of a text prediction: attention maps, probabilities and more, as plain data.

Plots, terminal, page and report all draw these numbers with these legends. Images have their view
model in `image_view.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.measures.alignment_head import AlignmentView
from manyheads.lens.panels import Figure
from manyheads.lens.rounding import rounded, significant
from manyheads.lens.trace.attention_reader import BUDGET, Groups, attentions, side_limit
from manyheads.lens.trace.gates import GateMap, gate_maps
from manyheads.lens.trace.grids import Box
from manyheads.nn.recording.trace import LayerId, Trace

SCHEMA = "manyheads-view/1"  # of the JSON: view.schema.json, beside this file
Matrix = list[list[float]]
Span = list[int]  # the characters [begin, end) that a token covers
TOKENS = 256  # of a text along each side of a map; of a longer text it shows groups


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
    # Of a text: the spans of rows and columns; None for a token without text, such as the end.
    row_spans: list[Span | None] | None = None
    column_spans: list[Span | None] | None = None
    # Of an image: the grids of rows and columns, as indices of its `grids`; None: no tokens.
    row_grid: int | None = None
    column_grid: int | None = None
    windows: list[list[list[Box]]] | None = None  # see `grids.window_boxes`
    causal: bool = False  # a causal mask hides later columns from each row
    # Of an untrained model: how far each head of the trained one is from it, the mean total
    # variation distance of rows; and up to which distance that is no difference.
    untrained_distance: list[float] | None = None
    untrained_noise: float | None = None
    taken_out: list[int] | None = None  # heads, from 1, whose output is set to zero


@dataclass(frozen=True)
class GateView:
    """The gate activations of one direction of a recurrent layer at every token."""

    site: str  # "encoder layer 1 backward"
    kind: str  # "encoder forward", "encoder backward", "decoder forward"
    layer: int  # from 1
    legend: str
    tokens: list[str]
    gates: list[str]  # "input", "forget", "output"; "reset", "update"
    mean: Matrix  # token, gate: the mean over units, 0 shut, 1 open


@dataclass(frozen=True)
class TextOverlay:
    """The attribution of each output token (row) to each source token (column)."""

    name: str  # "relevance", "integrated gradients"
    legend: str
    rows: list[str]
    columns: list[str]
    weights: Matrix  # row, column
    signed: bool = False  # negative numbers are evidence against the output
    row_spans: list[Span | None] | None = None  # as in MapView
    column_spans: list[Span | None] | None = None


@dataclass(frozen=True)
class StepView:
    """One step of the search that found the output: the chosen token and its alternatives."""

    token: str
    probability: float  # that the search gave it; 1 where a rule of the search forced it
    candidates: list[tuple[str, float]]  # the model's top tokens and their probabilities


@dataclass(frozen=True)
class TextView:
    """A text-to-text prediction: tokens, probabilities, maps, and gates of recurrent layers.

    Row t of a decoder's map is the step that produces output token t; the columns of its
    self-attention are the tokens read before: the start token and the output before t.
    """

    source: list[str]
    output: list[str]
    probabilities: list[float]  # of each output token, given those before it
    maps: list[MapView]
    gates: list[GateView] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # remarks, such as about omissions
    figures: list[Figure] = field(default_factory=list)  # figures other than maps
    overlays: list[TextOverlay] = field(default_factory=list)  # attributions of output tokens
    alignment: AlignmentView | None = None  # of a translation
    # Of a search; one less than the output if that was cut off, as its end was not searched.
    steps: list[StepView] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Convert the view to JSON types."""
        return {"schema": SCHEMA, "kind": "text", **json_fields(self)}


def json_fields(view: Any) -> dict[str, Any]:
    """Convert the fields of a view to JSON types; its matrices are not copied."""
    return {name: _plain(value) for name, value in vars(view).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Figure):
        return value.to_json()
    if is_dataclass(value):
        return json_fields(value)
    if isinstance(value, list) and value and (is_dataclass(value[0]) or type(value[0]) is tuple):
        return [_plain(part) for part in value]
    return list(value) if isinstance(value, tuple) else value


class _Side(NamedTuple):
    """The labels, spans and grouping of the rows or the columns of a map."""

    labels: Sequence[str]
    spans: Sequence[Span | None] | None
    size: int  # consecutive tokens that are shown as one

    @property
    def groups(self) -> Groups:
        return Groups.of(len(self.labels), self.size)


def text_view(
    trace: Trace,
    *,
    source: Sequence[str],
    output: Sequence[str],
    probabilities: Sequence[float],
    start: str = "<s>",
    source_spans: Sequence[Span | None] | None = None,
    output_spans: Sequence[Span | None] | None = None,
    budget: int = BUDGET,
) -> TextView:
    """Describe one forward pass of an encoder-decoder over a source and its whole output.

    Args:
        trace: the recorded trace.
        source: the tokens of the encoder.
        output: the tokens of the decoder, with the last step's.
        probabilities: of each output token.
        start: the start token that the decoder reads before `output[:-1]`.
        source_spans: the characters that the source tokens cover.
        output_spans: the same of the output.
        budget: maximum number of weights of all maps; maps of a long text show groups of tokens.

    Raises:
        UsageError: the tokens do not match the trace.
    """
    read = [start, *output[:-1]]
    found = attentions(trace)
    most = min(side_limit(found, budget), TOKENS)
    long_source, long_output = (-(-len(tokens) // most) for tokens in (source, output))
    sources = _Side(source, source_spans, long_source)
    outputs = _Side(output, output_spans, long_output)
    before = _Side(read, None if output_spans is None else [None, *output_spans[:-1]], long_output)
    step = "from the step that predicts each output word"
    sides = {
        "encoder self": (sources, sources, "from each source word to the source"),
        "decoder self": (outputs, before, f"{step} to the words before it"),
        "decoder cross": (outputs, sources, f"{step} to the source"),
    }
    maps = []
    for each in found:
        kind = kind_of(each.layer_id)
        if kind not in sides:
            known = ", ".join(map(repr, sides))
            raise UsageError(
                f"The trace has a map of kind {kind!r}; there are words only for {known}."
            )
        rows, columns, what = sides[kind]
        if each.shape != (len(rows.labels), len(columns.labels)):
            queries, keys = each.shape
            raise UsageError(
                f"The map of {each.layer_id} has {queries} queries and {keys} keys, but "
                f"{len(rows.labels)} and {len(columns.labels)} labels were given: label every "
                "token of the recorded pass."
            )
        maps.append(
            map_view(
                each.layer_id,
                each.merged(rows.groups, columns.groups),
                rows=_joined(rows.labels, rows.size),
                columns=_joined(columns.labels, columns.size),
                what=what,
                row_spans=_covered(rows.spans, rows.size),
                column_spans=_covered(columns.spans, columns.size),
                causal=each.causal,
            )
        )
    notes = [
        f"The {name} has {len(side.labels):,} tokens: maps show groups of {side.size}; rows are "
        "their mean, columns their sum."
        for name, side in (("source", sources), ("output", outputs))
        if maps and side.size > 1
    ]
    return TextView(
        list(source),
        list(output),
        [round(p, 6) for p in probabilities],
        maps,
        [
            _gate_view(e, read if e.layer_id.stack == "decoder" else source)
            for e in gate_maps(trace)
        ],
        notes,
    )


def text_overlay(
    name: str,
    legend: str,
    weights: Float[Tensor, "row column"],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    size: int = 1,
    row_spans: Sequence[Span | None] | None = None,
    column_spans: Sequence[Span | None] | None = None,
    signed: bool = False,
) -> TextOverlay:
    """Build the overlay of an attribution; of a long text it shows groups of tokens.

    The weights are given for every group of `size` output tokens (rows) and every source token;
    at most 256 columns are shown. Labels and spans are those of single tokens.
    """
    wide = -(-len(columns) // TOKENS)
    groups = Groups.of(len(columns), wide)
    shown = torch.zeros(len(weights), groups.count).index_add_(1, groups.index, weights.float())
    labels = _joined(rows, size), _joined(columns, wide)
    spans = _covered(row_spans, size), _covered(column_spans, wide)
    return TextOverlay(name, legend, *labels, significant(shown), signed, *spans)


def _joined(tokens: Sequence[str], size: int) -> list[str]:
    """Label groups of consecutive tokens by their first and last token."""
    if size == 1:
        return list(tokens)
    groups = [tokens[first : first + size] for first in range(0, len(tokens), size)]
    return [f"{each[0]}…{each[-1]}" if len(each) > 1 else each[0] for each in groups]


def _covered(spans: Sequence[Span | None] | None, size: int) -> list[Span | None] | None:
    """Return the characters that groups of consecutive tokens cover."""
    if spans is None:
        return None
    covered: list[Span | None] = []
    for first in range(0, len(spans), size):
        real = [span for span in spans[first : first + size] if span is not None]
        covered.append([real[0][0], real[-1][1]] if real else None)
    return covered


def kind_of(layer_id: LayerId) -> str:
    """Return the kind of attention of a layer, such as "decoder cross"."""
    return f"{layer_id.stack} {layer_id.kind}".strip()


def clearest(maps: Iterable[MapView]) -> MapView:
    """Choose the layer whose mean over heads is the most informative.

    Measured by how much the rows differ from their average (generalised Jensen-Shannon
    divergence): zero if all rows are equal, uniform or not.
    """

    def information(layer: MapView) -> float:
        rows = torch.tensor(layer.mean, dtype=torch.float64)
        return float(_entropy(rows.mean(dim=0)) - _entropy(rows).mean())

    return max(maps, key=information)


def _entropy(p: Float[Tensor, "*batch key"]) -> Float[Tensor, "*batch"]:
    return torch.special.entr(p).sum(dim=-1)


def map_view(
    layer_id: LayerId,
    weights: Float[Tensor, "head row column"],
    *,
    rows: list[str],
    columns: list[str],
    what: str,
    partial: bool = False,
    **where: Any,
) -> MapView:
    """Build the view of one attention: rounded weights and legends.

    `what` completes "attention ..." in legends; with `partial`, part of the attention goes to the
    padding of windows, which is not shown. `where` are the fields of `MapView` with defaults.

    Raises:
        UsageError: weights are NaN or infinite.
    """
    if not bool(weights.isfinite().all()):
        raise UsageError(
            f"The attention of {layer_id} contains NaN: the weights of this model are damaged, or "
            "its training diverged. Check the run with `manyheads doctor`."
        )
    whole = bool((weights.sum(dim=-1) - 1).abs().max() < 1e-3)
    rest = "1, the rest goes to padding" if partial else "1, or to 0 with nothing to attend to"
    total = "every row sums to 1" if whole else f"rows sum to {'at most ' * partial}{rest}"
    place = f"{layer_id.stack} layer {layer_id.layer + 1}"
    heads = len(weights)
    mean = f"mean of {heads} heads, " if heads > 1 else ""
    return MapView(
        site=str(layer_id),
        kind=kind_of(layer_id),
        layer=layer_id.layer + 1,
        legend=f"{place}, {mean}attention {what}; {total}",
        head_legends=[
            f"{place}, head {head + 1}, attention {what}; {total}" for head in range(heads)
        ],
        rows=rows,
        columns=columns,
        mean=rounded(weights.mean(dim=0)),
        weights=rounded(weights),
        **where,
    )


def _gate_view(gates: GateMap, tokens: Sequence[str]) -> GateView:
    layer_id = gates.layer_id
    units = {name: gate.shape[1] for name, gate in gates.gates.items()}
    if any(len(gate) != len(tokens) for gate in gates.gates.values()):
        raise UsageError(
            f"The gates of {layer_id} have {len(next(iter(gates.gates.values())))} tokens, but "
            f"{len(tokens)} labels were given: label every token of the recorded pass."
        )
    return GateView(
        site=str(layer_id),
        kind=kind_of(layer_id),
        layer=layer_id.layer + 1,
        legend=f"{layer_id}, gates as each token is read, mean of {max(units.values())} units; "
        "0 is shut, 1 is open",
        tokens=list(tokens),
        gates=list(gates.gates),
        mean=rounded(torch.stack([gate.mean(dim=1) for gate in gates.gates.values()], dim=1)),
    )
