"""The view model: what there is to see in one prediction, as plain data.

Every surface - plot, terminal, page, report - draws these same numbers with these same legends.
Pictures have theirs in `picture.py`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.alignment import AlignmentView
from manyheads.lens.gates import GateMap, gate_maps
from manyheads.lens.grids import Box
from manyheads.lens.panels import Figure
from manyheads.lens.reading import BUDGET, Attention, Groups, attentions, side_limit
from manyheads.nn.trace import Site, Trace

SCHEMA = "manyheads-view/1"  # of the JSON: view.schema.json, beside this file
Matrix = list[list[float]]
Span = list[int]  # the characters [begin, end) that a token stands for
DECIMALS = 4
TOKENS = 256  # of a text that a map shows a side; of a longer one it shows groups


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
    # Of a text: what rows and columns stand for; None for a token that is no text, such as the end.
    row_spans: list[Span | None] | None = None
    column_spans: list[Span | None] | None = None
    # Of a picture: the grids that rows and columns are, as numbers of its `grids`; None: no tokens.
    row_grid: int | None = None
    column_grid: int | None = None
    windows: list[list[list[Box]]] | None = None  # see `grids.window_boxes`
    causal: bool = False  # a mask hides from each row the columns behind it


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
class TextOverlay:
    """What each source token (column) has to do with each output token (row)."""

    name: str  # "relevance", "integrated gradients"
    legend: str
    rows: list[str]
    columns: list[str]
    weights: Matrix  # row, column
    signed: bool = False  # negative numbers speak against
    row_spans: list[Span | None] | None = None  # as of a map
    column_spans: list[Span | None] | None = None


@dataclass(frozen=True)
class StepView:
    """One step of the search that found the output: what was chosen, and what might have been."""

    token: str
    probability: float  # that the search gave it; 1 where a rule of the search forced it
    candidates: list[tuple[str, float]]  # the model's likeliest tokens there, and probabilities


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
    notes: list[str] = field(default_factory=list)  # what one has to know, such as what is left out
    figures: list[Figure] = field(default_factory=list)  # what is to see beside maps
    overlays: list[TextOverlay] = field(default_factory=list)  # what explains each output token
    alignment: AlignmentView | None = None  # of a translation
    # Of a search; one less than the output where that was cut off, as its end was not searched.
    steps: list[StepView] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Turn the view into what `json.dumps` takes."""
        return {
            "schema": SCHEMA,
            "kind": "text",
            **vars(self),
            "maps": [vars(found) for found in self.maps],
            "figures": [found.to_json() for found in self.figures],
            "gates": [vars(found) for found in self.gates],
            "overlays": [vars(found) for found in self.overlays],
            "alignment": None if self.alignment is None else vars(self.alignment),
            "steps": [
                {**vars(step), "candidates": [list(each) for each in step.candidates]}
                for step in self.steps
            ],
        }


class _Side(NamedTuple):
    """What the rows or the columns of a map are."""

    labels: Sequence[str]
    spans: Sequence[Span | None] | None
    size: int  # tokens in a row that are shown as one

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
        trace: what was recorded.
        source: the tokens that the encoder read.
        output: the tokens that the decoder produced, the last step's included.
        probabilities: of each output token.
        start: the token that the decoder read first, in front of `output[:-1]`.
        source_spans: the characters of the source that its tokens stand for.
        output_spans: the same of the output.
        budget: the most weights of all maps together; of a long text they show groups of tokens.

    Raises:
        UsageError: the tokens do not fit the trace.
    """
    if len(probabilities) != len(output):
        raise UsageError(f"{len(output)} output tokens have {len(probabilities)} probabilities.")
    for name, tokens, given in (("source", source, source_spans), ("output", output, output_spans)):
        if given is not None and len(given) != len(tokens):
            raise UsageError(f"{len(tokens)} {name} tokens have {len(given)} spans.")
    read = [start, *output[:-1]]
    found = attentions(trace)
    most = _limit(found, budget)
    long_source, long_output = (-(-len(tokens) // most) for tokens in (source, output))
    sources = _Side(source, source_spans, long_source)
    outputs = _Side(output, output_spans, long_output)
    before = _Side(read, None if output_spans is None else [None, *output_spans[:-1]], long_output)
    sides = {
        "encoder self": (sources, sources, "from each source word to the source"),
        "decoder self": (outputs, before, "from each output word to the words before it"),
        "decoder cross": (outputs, sources, "from each output word to the source"),
    }
    maps = []
    for each in found:
        kind = kind_of(each.site)
        if kind not in sides:
            known = ", ".join(map(repr, sides))
            raise UsageError(
                f"The trace has a map of kind {kind!r}; there are words only for {known}."
            )
        rows, columns, what = sides[kind]
        if each.shape != (len(rows.labels), len(columns.labels)):
            queries, keys = each.shape
            raise UsageError(
                f"The map of {each.site} has {queries} queries and {keys} keys, but "
                f"{len(rows.labels)} and {len(columns.labels)} labels were given: label every "
                "token of the recorded pass."
            )
        maps.append(
            map_view(
                each.site,
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
        f"The {name} has {len(side.labels):,} tokens: maps show {side.size} in a row as one, rows "
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
            _gate_view(found, read if found.site.stack == "decoder" else source)
            for found in gate_maps(trace)
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
    """Label what explains output tokens; of a long text show groups of tokens.

    Args:
        name: see `TextOverlay`, as for the legend.
        legend: in words.
        weights: of groups of output tokens, and of every source token.
        rows: every output token.
        columns: every source token.
        size: output tokens in a row that make a group; of source tokens at most 256 are shown.
        row_spans: the characters that output tokens stand for.
        column_spans: the same of source tokens.
        signed: whether negative numbers speak against.
    """
    wide = -(-len(columns) // TOKENS)
    groups = Groups.of(len(columns), wide)
    shown = torch.zeros(len(weights), groups.count).index_add_(1, groups.index, weights.float())
    return TextOverlay(
        name,
        legend,
        _joined(rows, size),
        _joined(columns, wide),
        significant(shown),
        signed,
        _covered(row_spans, size),
        _covered(column_spans, wide),
    )


def _limit(found: Sequence[Attention], budget: int) -> int:
    return min(side_limit(found, budget), TOKENS)


def _joined(tokens: Sequence[str], size: int) -> list[str]:
    """Name groups of tokens in a row by their first and their last."""
    if size == 1:
        return list(tokens)
    groups = [tokens[first : first + size] for first in range(0, len(tokens), size)]
    return [f"{each[0]}…{each[-1]}" if len(each) > 1 else each[0] for each in groups]


def _covered(spans: Sequence[Span | None] | None, size: int) -> list[Span | None] | None:
    """Say what groups of tokens in a row stand for."""
    if spans is None:
        return None
    covered: list[Span | None] = []
    for first in range(0, len(spans), size):
        real = [span for span in spans[first : first + size] if span is not None]
        covered.append([real[0][0], real[-1][1]] if real else None)
    return covered


def kind_of(site: Site) -> str:
    """Name the kind of attention, all layers alike: "decoder cross"."""
    return f"{site.stack} {site.kind}".strip()


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


def map_view(
    site: Site,
    weights: Float[Tensor, "head row column"],
    *,
    rows: list[str],
    columns: list[str],
    what: str,
    row_spans: list[Span | None] | None = None,
    column_spans: list[Span | None] | None = None,
    row_grid: int | None = None,
    column_grid: int | None = None,
    windows: list[list[list[Box]]] | None = None,
    causal: bool = False,
    partial: bool = False,
) -> MapView:
    """Round the weights of one attention, and say in words what they are.

    Args:
        site: where it is.
        weights: of its heads.
        rows: labels of the queries.
        columns: labels of the keys.
        what: completes "attention ..." in legends.
        row_spans: see `MapView`, as for those below.
        column_spans: as above.
        row_grid: as above.
        column_grid: as above.
        windows: as above.
        causal: as above.
        partial: part of the attention goes to what is not shown, the padding of windows.

    Raises:
        UsageError: weights are not numbers.
    """
    if not bool(weights.isfinite().all()):
        raise UsageError(
            f"The attention of {site} holds what is not a number: the weights of this model are "
            "damaged, or it diverged in training. `manyheads doctor` looks at a run."
        )
    whole = bool((weights.sum(dim=-1) - 1).abs().max() < 1e-3)
    rest = "1, the rest goes to padding" if partial else "1, or to 0 with nothing to attend to"
    total = "every row sums to 1" if whole else f"rows sum to {'at most ' * partial}{rest}"
    place = f"{site.stack} layer {site.layer + 1}"
    heads = len(weights)
    mean = f"mean of {heads} heads, " if heads > 1 else ""
    return MapView(
        site=str(site),
        kind=kind_of(site),
        layer=site.layer + 1,
        legend=f"{place}, {mean}attention {what}; {total}",
        head_legends=[
            f"{place}, head {head + 1}, attention {what}; {total}" for head in range(heads)
        ],
        rows=rows,
        columns=columns,
        mean=rounded(weights.mean(dim=0)),
        weights=rounded(weights),
        row_spans=row_spans,
        column_spans=column_spans,
        row_grid=row_grid,
        column_grid=column_grid,
        windows=windows,
        causal=causal,
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
        kind=kind_of(site),
        layer=site.layer + 1,
        legend=f"{site}, gates as each token is read, mean of {max(units.values())} units; "
        "0 is shut, 1 is open",
        tokens=list(tokens),
        gates=list(found.gates),
        mean=rounded(torch.stack([gate.mean(dim=1) for gate in found.gates.values()], dim=1)),
    )


def rounded(x: Tensor) -> Any:
    """Turn a tensor into lists of numbers that are short to write."""
    # In double precision, so that 0.1234 is printed as 0.1234.
    return x.double().round(decimals=DECIMALS).tolist()


def significant(x: Tensor) -> Any:
    """Turn a tensor into lists of numbers, with four digits of the largest."""
    peak = float(x.abs().max()) if x.numel() else 0.0
    digits = DECIMALS if peak == 0 else DECIMALS - 1 - math.floor(math.log10(peak))
    return x.double().round(decimals=digits).tolist()
