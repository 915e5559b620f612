"""Looking inside: a recorder that parts of a model write to while it is open.

The recorder never takes part in the computation. A part that has something to show asks
`active()` and, only if a recorder is open, adds a record of what it already holds. So the answer
of a model is bitwise the same with and without a recorder.

A recorder of gradients also keeps what gradients of a score can be asked for (see `flow.py` and
`features.py`): tensors that are there anyway, and with them the graph that leads to them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import local
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from manyheads.errors import UsageError

if TYPE_CHECKING:
    from manyheads.nn.places import Places


@dataclass(frozen=True, slots=True)
class Site:
    """Where in a model something was recorded, for example decoder layer 2, "cross"."""

    stack: str = ""
    layer: int = 0
    kind: str = "self"

    def __str__(self) -> str:
        """Name the site as legends do, counting layers from 1."""
        return f"{self.stack} layer {self.layer + 1} {self.kind}".strip()


@runtime_checkable
class Record(Protocol):
    """What every record has, whatever it shows: the site it came from."""

    @property
    def site(self) -> Site:
        """The part of the model that wrote the record."""


@dataclass
class Trace:
    """The records of everything that ran while the recorder was open, in order.

    `here` is where in a picture the tokens stand that the model is at (see `places.py`).
    `gradients` asks the parts for what gradients are computed from.
    """

    records: list[Record] = field(default_factory=list)
    here: "Places | None" = None
    gradients: bool = False

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records in the order in which they were written."""
        return iter(self.records)

    def __len__(self) -> int:
        """Count the records."""
        return len(self.records)


class _Recorder(local):
    """The open recorder of each thread: two threads of a server must not share a trace.

    Thread-local rather than a ContextVar, which torch.compile cannot read without splitting the
    model into one graph an attention. The trace is an attribute of the instance from the start:
    a default on the class would escape the guards of torch.compile.
    """

    def __init__(self) -> None:
        self.trace: Trace | None = None


_recorder = _Recorder()


@contextmanager
def record(*, gradients: bool = False) -> Iterator[Trace]:
    """Open a recorder for the enclosed forward passes.

    For example `with record() as trace: model(x)`.

    Args:
        gradients: keep also what gradients of a score are computed from. The passes have to run
            with gradients on, and the trace holds on to their graph.
    """
    outer = _recorder.trace
    _recorder.trace = trace = Trace(gradients=gradients)
    try:
        yield trace
    finally:
        _recorder.trace = outer


def active() -> Trace | None:
    """Return the open recorder of this thread, or None."""
    return _recorder.trace


_RECORDER_UNDER_COMPILE = (
    "A recorder is open while a model compiled with torch.compile runs. Record with the "
    "uncompiled model instead (compiled._orig_mod): it has the same weights and maps."
)


def refuse_compiled() -> None:
    """Say that a recorder and torch.compile exclude each other."""
    raise UsageError(_RECORDER_UNDER_COMPILE)


# Not compiled, or the exception would be swallowed and the model run uncompiled. Under fullgraph
# torch raises an exception of its own here, and shows the reason. This is what the decorator
# torch.compiler.disable sets; calling it would import the compiler, which costs more than a second.
refuse_compiled._torchdynamo_disable = True  # type: ignore[attr-defined]
refuse_compiled._torchdynamo_disable_msg = _RECORDER_UNDER_COMPILE  # type: ignore[attr-defined]
