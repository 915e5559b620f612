"""Figures beside the maps: measures of one pass, for every kind of model.

Each measure lies in `lens` with its formula; what a model has nothing to show for is left out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import nn

from manyheads.lens.described_figures import figure
from manyheads.lens.labels import label
from manyheads.lens.measures.attention_difference import MapDistance
from manyheads.lens.measures.attention_distance import distance_figures
from manyheads.lens.measures.cka import cka_figures
from manyheads.lens.measures.head_figures import head_figures
from manyheads.lens.measures.position_figures import position_figures
from manyheads.lens.measures.principal_components import neighbour_figure, plane_figures
from manyheads.lens.measures.recorded_masks import mask_figures, window_mask_figures
from manyheads.lens.panels import Figure
from manyheads.lens.trace.attention_reader import attentions
from manyheads.lens.trace.states import LayerState, States, record_states
from manyheads.lens.view.text_view import GateView
from manyheads.nn.recording.trace import Trace, record

TOKENS = 128  # of a text whose gates are shown
PATCH = "patch"


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """One recorded pass of a model, with the output of each layer."""

    model: nn.Module
    trace: Trace
    states: States
    distances: Mapping[str, MapDistance] | None = None  # of an untrained model from the trained


_kept: ContextVar[list[Trace] | None] = ContextVar("kept", default=None)


@contextmanager
def kept_traces() -> Iterator[list[Trace]]:
    """Keep the trace of each pass that is watched while this is open, with its values."""
    traces: list[Trace] = []
    token = _kept.set(traces)
    try:
        yield traces
    finally:
        _kept.reset(token)


@contextmanager
def watched(model: nn.Module) -> Iterator[Watched]:
    """Record the pass that runs while this is open, without changing its output."""
    kept = _kept.get()
    recorder = record(gradients=kept is not None)
    with recorder as trace, record_states(model) as states, torch.inference_mode():
        yield Watched(model, trace, states)
    if kept is not None:
        kept.append(trace)


def figures_of_image(seen: Watched) -> list[Figure]:
    """Measure one pass over an image."""
    model, trace, states = seen.model, seen.trace, seen.states
    maps = attentions(trace)
    return [
        *distance_figures(maps, states.layers),
        *head_figures(model, trace),
        *cka_figures(states.layers),
        *position_figures(model),
        *window_mask_figures(trace),
        *_planes_of_image(states.layers),
    ]


def figures_of_text(
    seen: Watched,
    *,
    names: Mapping[str, Sequence[str]],
    outputs: Sequence[str] = (),
    gates: Sequence[GateView] = (),
    pieces: Sequence[Callable[[int], str]] = (),
) -> list[Figure]:
    """Measure one pass over a text.

    `names` are the tokens that each stack ("encoder", "decoder") reads, `outputs` the decoder's
    tokens, `pieces` write a token of each embedding table.
    """
    model, trace, states = seen.model, seen.trace, seen.states
    maps = attentions(trace)
    rows = {**names, "decoder": outputs}
    sides = {f"{stack} self": (rows[stack], read) for stack, read in names.items()}
    whose = ("source", "target") if len(pieces) > 1 else ("text's",)
    return [
        *_of_gates(gates),
        *mask_figures(trace, sides),
        *head_figures(model, trace),
        *distance_figures(maps, states.layers),
        *cka_figures(states.layers),
        *plane_figures(states.layers, names),
        *(
            neighbour_figure(lookup, piece, what)
            for lookup, piece, what in zip(states.lookups, pieces, whose, strict=False)
        ),
        *position_figures(model, max(map(len, names.values()))),
    ]


def _planes_of_image(layers: Sequence[LayerState]) -> list[Figure]:
    """The patches before the first layer of tokens, and behind the last of all."""
    tokens = [each for each in layers if not each.is_map and each.grid is not None]
    figures = []
    for state in dict.fromkeys(tokens[:1] + tokens[-1:]):
        assert state.grid is not None
        rows, columns = state.grid.shape
        patches = [f"{row + 1},{column + 1}" for row in range(rows) for column in range(columns)]
        names = [*state.grid.extra, *patches]
        groups = [*state.grid.extra, *[PATCH] * len(patches)]
        figures += plane_figures([state], {state.stack: names}, groups)
    return figures


def _of_gates(gates: Sequence[GateView]) -> list[Figure]:
    return [
        figure(
            "gates",
            {
                "site": each.site,
                "legend": each.legend,
                "cut": f"; the first {TOKENS} tokens" if len(each.tokens) > TOKENS else "",
            },
            values=[[*row] for row in each.mean[:TOKENS]],
            rows=[label(token) for token in each.tokens[:TOKENS]],
            columns=each.gates,
        )
        for each in gates
    ]
