"""The recorder that modules of a model write to while it is open.

The recorder never takes part in the computation. A module that has something to show calls
`active()` and, only if a recorder is open, adds a record of tensors that it holds anyway. So the
output of a model is bitwise the same with and without a recorder.

A recorder of gradients also keeps the tensors that gradients of a score are computed for (see
`attention_record.ValueRecord` and `features.py`), and with them the graph that leads to them.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from threading import local
from typing import Any, Protocol, runtime_checkable
from weakref import ReferenceType

import torch
from torch import Tensor, UntypedStorage

from manyheads.errors import UsageError
from manyheads.nn.recording.decode_steps import DecodeStep
from manyheads.nn.recording.token_grid import TokenGrid

BUDGET = 4 * 2**30  # bytes that a recorder keeps


@dataclass(frozen=True, slots=True)
class LayerId:
    """Where in a model something was recorded, for example decoder layer 2, "cross"."""

    stack: str = ""
    layer: int = 0
    kind: str = "self"

    def __str__(self) -> str:
        """Name the layer as legends do, counting from 1."""
        return f"{self.stack} layer {self.layer + 1} {self.kind}".strip()


@runtime_checkable
class Record(Protocol):
    """Anything that was recorded; every record names the layer that wrote it."""

    @property
    def layer_id(self) -> LayerId:
        """The module that was recorded."""


@runtime_checkable
class SequenceRecord(Record, Protocol):
    """A record of some tokens of a sequence, to be joined with those of later decode steps."""

    def select(self, row: int) -> "SequenceRecord":
        """Take one row of the batch, without its padding."""

    def join(self, later: Sequence[Any]) -> Record:
        """Join the record of a row with those of the steps after it."""


@dataclass
class Trace:
    """Everything that was recorded while the recorder was open, in order."""

    records: list[Record] = field(default_factory=list)
    current_grid: TokenGrid | None = None  # of the tokens that are computed now: see `tracking.py`
    memory: tuple[ReferenceType[Tensor], TokenGrid | None] | None = None  # an encoder's output
    decode_step: DecodeStep | None = None  # of the search that is running
    gradients: bool = False  # whether to keep what gradients are computed from
    states: bool = False  # whether to keep the tensors at every site of `nn/editing/seam.py`
    budget: int = BUDGET  # bytes
    dropped: int = 0  # records that did not fit the budget
    kept: int = 0  # bytes
    _storages: set[int] = field(default_factory=set, repr=False)

    def add(self, record: Record) -> None:
        """Keep a record, unless it or one before it exceeds the budget: see `complete`."""
        # Many tensors are views of one that was kept already, such as the keys of a source.
        storages = {each.data_ptr(): each.nbytes() for each in _storages(record)}
        size = sum(size for key, size in storages.items() if key not in self._storages)
        if self.dropped or self.kept + size > self.budget:
            self.dropped += 1
            return
        self.kept += size
        self._storages.update(storages)
        self.records.append(record)

    def note(self, make: Callable[["Trace"], Record]) -> None:
        """Add the record of an attention, which `make` builds for this trace.

        Raises:
            UsageError: torch.compile traces the model.
        """
        if torch.compiler.is_compiling():
            refuse_compiled()
        self.add(make(self))

    def complete(self) -> "Trace":
        """Return the trace itself, if nothing was dropped.

        Raises:
            UsageError: the budget was spent before everything was recorded.
        """
        if self.dropped:
            raise UsageError(
                f"The recorder was full: {len(self)} records fitted its {self.budget:,} bytes, "
                f"{self.dropped} more did not. Record fewer examples at a time, or give it more "
                "with record(budget=...)."
            )
        return self

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


def _storages(record: Record) -> Iterator[UntypedStorage]:
    """Find the memory behind the tensors of a record: its fields, or elements of tuples."""
    names = [each.name for each in fields(record)] if is_dataclass(record) else vars(record)
    waiting: list[Any] = [getattr(record, name) for name in names]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Tensor):
            yield value.untyped_storage()
        elif isinstance(value, tuple):
            waiting.extend(value)


@contextmanager
def record(
    budget: int = BUDGET, *, gradients: bool = False, states: bool = False
) -> Iterator[Trace]:
    """Open a recorder for the enclosed forward passes.

    For example `with record() as trace: model(x)`.

    Args:
        budget: the most bytes to keep of them.
        gradients: keep also what gradients of a score are computed from. The passes have to run
            with gradients on, and the trace holds on to their graph, which no budget counts.
        states: keep also what `edit()` can change: the residual stream, each head's output, and
            what attention and feed-forward add.
    """
    outer = _recorder.trace
    _recorder.trace = trace = Trace(budget=budget, gradients=gradients, states=states)
    try:
        yield trace
    finally:
        _recorder.trace = outer


def active() -> Trace | None:
    """Return the open recorder of this thread, or None."""
    return _recorder.trace


def refusal(message: str) -> Callable[[], None]:
    """Make a function that raises an error, also where torch.compile traces its caller."""

    def refuse() -> None:
        raise UsageError(message)

    # Not compiled, or the exception would be swallowed and the model run uncompiled. Under
    # fullgraph torch raises an exception of its own here, and shows the reason. This is what the
    # decorator torch.compiler.disable sets; calling it would import the compiler, which costs more
    # than a second.
    refuse._torchdynamo_disable = True  # type: ignore[attr-defined]
    refuse._torchdynamo_disable_msg = message  # type: ignore[attr-defined]
    return refuse


refuse_compiled = refusal(
    "A recorder is open while a model compiled with torch.compile runs. Record with the "
    "uncompiled model instead (compiled._orig_mod): it has the same weights and maps."
)
