"""What there is to see beside maps: measures of one pass, for every kind of model.

Each measure lies in `lens` with its formula; what a model has nothing to show for is left out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from manyheads.app.doctor.heads import ALIKE, judged
from manyheads.lens.distance import distance_figures
from manyheads.lens.head_figures import head_figures
from manyheads.lens.idle_heads import HeadWatch
from manyheads.lens.labels import label
from manyheads.lens.likeness import likeness_figures
from manyheads.lens.masks import mask_figures, window_mask_figures
from manyheads.lens.panels import Figure, Heat
from manyheads.lens.plane import neighbour_figure, plane_figures
from manyheads.lens.position_figures import position_figures
from manyheads.lens.reading import attentions
from manyheads.lens.states import LayerState, States, record_states
from manyheads.lens.view import GateView
from manyheads.nn.trace import Trace, record

TOKENS = 128  # of a text whose gates are shown
PATCH = "patch"


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """One pass of a model: what was recorded of it, and what each layer answered."""

    model: nn.Module
    trace: Trace
    states: States


@contextmanager
def watched(model: nn.Module) -> Iterator[Watched]:
    """Watch the pass that runs while this is open; its answer is what it would be unwatched."""
    with record() as trace, record_states(model) as states, torch.inference_mode():
        yield Watched(model, trace, states)


def figures_of_picture(seen: Watched) -> list[Figure]:
    """Measure one pass over a picture."""
    model, trace, states = seen.model, seen.trace, seen.states
    found = attentions(trace)
    return [
        *distance_figures(found, states.layers),
        *_of_heads(model, trace),
        *likeness_figures(states.layers),
        *position_figures(model),
        *window_mask_figures(trace),
        *_planes_of_picture(states.layers),
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

    Args:
        seen: what is measured.
        names: of the tokens that each stack reads: "encoder", "decoder".
        outputs: what the decoder writes, a token for each that it reads.
        gates: of its recurrent layers.
        pieces: write a token of each embedding table, in the order in which they are asked.
    """
    model, trace, states = seen.model, seen.trace, seen.states
    found = attentions(trace)
    rows = {**names, "decoder": outputs}
    sides = {f"{stack} self": (rows[stack], read) for stack, read in names.items()}
    whose = ("source", "target") if len(pieces) > 1 else ("text's",)
    return [
        *_of_gates(gates),
        *mask_figures(trace, sides),
        *_of_heads(model, trace),
        *distance_figures(found, states.layers),
        *likeness_figures(states.layers),
        *plane_figures(states.layers, names),
        *(
            neighbour_figure(lookup, piece, what)
            for lookup, piece, what in zip(states.lookups, pieces, whose, strict=False)
        ),
        *position_figures(model, max(map(len, names.values()))),
    ]


def _of_heads(model: nn.Module, trace: Trace) -> list[Figure]:
    watch = HeadWatch()
    watch.add(trace)
    return head_figures(watch.heads(model), watch, judged, ALIKE)


def _planes_of_picture(layers: Sequence[LayerState]) -> list[Figure]:
    """The patches before the first layer of tokens, and behind the last of all."""
    tokens = [each for each in layers if not each.is_map and each.places is not None]
    figures = []
    for state in dict.fromkeys(tokens[:1] + tokens[-1:]):
        assert state.places is not None
        rows, columns = state.places.grid
        patches = [f"{row + 1},{column + 1}" for row in range(rows) for column in range(columns)]
        names = [*state.places.extra, *patches]
        groups = [*state.places.extra, *[PATCH] * len(patches)]
        figures += plane_figures([state], {state.stack: names}, groups)
    return figures


def _of_gates(gates: Sequence[GateView]) -> list[Figure]:
    """Draw how far gates are open, a row a token."""
    return [
        Figure(
            "gates",
            each.legend + (f"; the first {TOKENS} tokens" if len(each.tokens) > TOKENS else ""),
            Heat(
                f"Gates, {each.site}",
                "gate",
                "token",
                [[*row] for row in each.mean[:TOKENS]],
                rows=[label(token) for token in each.tokens[:TOKENS]],
                columns=each.gates,
                scale=[0.0, 1.0],
            ),
        )
        for each in gates
    ]
