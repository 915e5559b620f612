"""The sites of a forward pass: where open edits change a tensor and a recorder of states keeps it.

A site is a `LayerId`: stack, layer and kind. Modules call `visit` behind `is_open()`, so a pass
without edits makes no call more than before. Layers of `LayerId` count from 0; "state" of layer -1
is what enters the first block. Names, as `site_name` writes them, count from 1.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import local
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.nn.recording.decode_steps import DecodeStep
from manyheads.nn.recording.trace import LayerId, active, refusal, refuse_compiled

STATE = "state"  # the residual stream at the boundary of two blocks
PARTS = ("attention", "cross", "feedforward")  # sub-layers, whose outputs are added to it
HEAD, PATTERN = "head", "pattern"
INPUTS = ("q", "k", "v")


@dataclass(frozen=True, slots=True, eq=False)
class Seat:
    """Which tokens and rows of the batch a tensor holds."""

    first: int | None = 0  # index of the first token; None: not known
    stepping: bool = False  # one token a beam: all of them have the index `first`
    rows: Int[Tensor, " sentence"] | None = None  # rows of the search's sources; None: all
    partitioned: bool = False  # rows are windows


@runtime_checkable
class Edits(Protocol):
    """What `edits.py` opens."""

    def change(self, site: LayerId, x: Tensor, seat: Seat) -> Tensor:
        """Return the changed tensor, or the same."""

    def resumed(self, stack: str) -> tuple[int, Tensor] | None:
        """Return the layer behind which a stack goes on, and its state there."""

    def has(self, site: LayerId) -> bool:
        """Whether an edit names this site."""


class _Editor(local):
    """The open edits of each thread, from the outermost to the innermost."""

    def __init__(self) -> None:
        self.edits: tuple[Edits, ...] = ()
        self.seat: Seat = Seat()


_editor = _Editor()


@dataclass(frozen=True, slots=True, eq=False)
class ActivationRecord:
    """The tensor at a site, kept by `record(states=True)`; of a step, a row a beam."""

    layer_id: LayerId
    x: Float[Tensor, "row *head token size"]
    decode_step: DecodeStep | None = None

    def select(self, row: int) -> "ActivationRecord":
        """Take one row of the batch."""
        return replace(self, x=self.x[row : row + 1])

    def join(self, later: Sequence["ActivationRecord"]) -> "ActivationRecord":
        """Join the steps of one row."""
        return replace(self, x=torch.cat([self.x, *(each.x for each in later)], dim=-2))


def is_open() -> bool:
    """Whether an edit or a recorder of states is open in this thread."""
    trace = active()
    return bool(_editor.edits) or (trace is not None and trace.states)


def edits_open() -> bool:
    """Whether an edit is open in this thread."""
    return bool(_editor.edits)


@contextmanager
def opened(edits: Edits) -> Iterator[None]:
    """Open edits for the enclosed passes, inside those that are open already."""
    outer, seat = _editor.edits, _editor.seat
    _editor.edits, _editor.seat = (*outer, edits), Seat()
    try:
        yield
    finally:
        _editor.edits, _editor.seat = outer, seat


def visit(
    layer_id: LayerId,
    kind: str,
    x: Float[Tensor, "row *head token size"],
    *,
    keys: bool = False,
    partitioned: bool = False,
    keep: bool = True,
) -> Float[Tensor, "row *head token size"]:
    """Let the open edits change a tensor, and keep the result if a recorder of states is open.

    Args:
        layer_id: the layer; its kind is replaced.
        kind: of the site.
        x: the tensor; in a step of a search the tokens are those of beams, or one.
        keys: whether the tokens are all keys, those of a cache included.
        partitioned: whether rows are windows.
        keep: whether it is recorded.

    Raises:
        UsageError: torch.compile traces the model, or an edit does not fit the tensor.
    """
    _refuse_compiling()
    site, seat = LayerId(layer_id.stack, layer_id.layer, kind), _editor.seat
    if keys:
        seat = Seat(rows=seat.rows if seat.stepping else None)
    if partitioned:
        seat = replace(seat, partitioned=True)
    for edits in _editor.edits:
        x = edits.change(site, x, seat)
    trace = active()
    if keep and trace is not None and trace.states:
        kept = x if trace.gradients else x.detach()
        if seat.stepping and kept.shape[-2] > 1:  # beams on the axis of tokens
            kept = kept.transpose(1, -2).flatten(0, 1).unsqueeze(-2)
        trace.add(ActivationRecord(site, kept, trace.decode_step))
    return x


def remaining(blocks: Any, x: Tensor) -> tuple[Tensor, Any]:
    """Leave out the blocks whose result an open edit has; return its state and the others."""
    first = layer_id_of(blocks[0].attention)
    for edits in _editor.edits:
        found = edits.resumed(first.stack)
        if found is not None:
            layer, state = found
            if not 0 < layer <= len(blocks) or state.shape[1:] != x.shape[1:]:
                raise UsageError(
                    f"The stack {first.stack!r} has layers 1 to {len(blocks)} and reads "
                    f"{tuple(x.shape)}: it cannot go on behind layer {layer} with "
                    f"{tuple(state.shape)}."
                )
            state = state.to(x).expand(len(x), -1, -1)
            return visit(LayerId(first.stack, layer - 1), STATE, state), blocks[layer:]
    return x, blocks


def edited_pattern(
    layer_id: LayerId,
    weights: Callable[[], Float[Tensor, "row head query key"]],
    *,
    partitioned: bool = False,
) -> Float[Tensor, "row head query key"] | None:
    """Compute and change the map of an attention, if an edit names it; else return None."""
    site = LayerId(layer_id.stack, layer_id.layer, f"{layer_id.kind} {PATTERN}")
    if not any(edits.has(site) for edits in _editor.edits):
        return None
    return visit(layer_id, site.kind, weights(), partitioned=partitioned, keep=False)


def at_tokens(first: int = 0) -> None:
    """Say which tokens a stack is about to read: a whole sequence, from this index on."""
    if is_open():
        _refuse_compiling()
        _editor.seat = Seat(first)


def at_step(position: int | None) -> None:
    """Say that a stack is about to read one token a beam, with this index."""
    if is_open():
        _refuse_compiling()
        _editor.seat = Seat(position, stepping=True, rows=_editor.seat.rows)


@contextmanager
def search_rows(rows: Int[Tensor, " sentence"], position: int) -> Iterator[None]:
    """Say which sentences of a search are left, and which token is read."""
    outer = _editor.seat
    _editor.seat = Seat(position, stepping=True, rows=rows)
    try:
        yield
    finally:
        _editor.seat = outer


def layer_id_of(attention: nn.Module) -> LayerId:
    """Return the layer of an attention, which windows may lie around."""
    inner: Any = attention
    while not hasattr(inner, "layer_id"):
        inner = inner.attention
    found: LayerId = inner.layer_id
    return found


def site_name(site: LayerId, head: int | None = None) -> str:
    """Name a site as messages, JSON and commands do: "decoder layer 2 cross head 2"."""
    return f"{site}" if head is None else f"{site} {head}"


def added_by(kind: str) -> str:
    """Name the site of what a whole attention adds to the residual stream, by the kind of one."""
    return f"added {'cross' if kind.startswith('cross') else 'attention'}"


def _refuse_compiling() -> None:
    if torch.compiler.is_compiling():
        refuse_compiled_edit() if _editor.edits else refuse_compiled()


def refuse_engine(name: str) -> None:
    """Raise an error if an edit is open while another engine than torch runs a model."""
    if _editor.edits:
        raise UsageError(
            f"An edit is open, but the engine {name} computes a whole model at once and nothing "
            "inside it can be changed: load the model with `engine='torch'`."
        )


refuse_compiled_edit = refusal(
    "An edit is open while a model compiled with torch.compile runs. Edit the uncompiled model "
    "instead (compiled._orig_mod): it has the same weights."
)
