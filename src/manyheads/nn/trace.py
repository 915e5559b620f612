"""Looking inside: a recorder that parts of a model write to while it is open.

The recorder never takes part in the computation. A part that has something to show asks
`active()` and, only if a recorder is open, adds a record of what it already holds. So the answer
of a model is bitwise the same with and without a recorder.

A recorder of gradients also keeps what gradients of a score can be asked for (see `flow.py` and
`features.py`): tensors that are there anyway, and with them the graph that leads to them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from threading import local
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from torch import Tensor, UntypedStorage

from manyheads.errors import UsageError

if TYPE_CHECKING:
    from manyheads.nn.moments import Moment
    from manyheads.nn.places import Places

BUDGET = 4 * 2**30  # bytes that a recorder keeps


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

    `here` is where in a picture the tokens stand that the model is at (see `places.py`), `moment`
    the step of a search that it is in (see `moments.py`). `gradients` asks the parts for what
    gradients are computed from.
    """

    records: list[Record] = field(default_factory=list)
    here: "Places | None" = None
    moment: "Moment | None" = None
    gradients: bool = False
    budget: int = BUDGET  # bytes
    dropped: int = 0  # records that came when the budget was spent
    kept: int = 0  # bytes
    _storages: set[int] = field(default_factory=set, repr=False)

    def add(self, record: Record) -> None:
        """Keep a record; but none any more once one has not fitted the budget.

        Whoever reads the trace asks `complete` first.
        """
        # Many tensors are views of one that was kept already, such as the keys of a source.
        storages = {each.data_ptr(): each.nbytes() for each in _storages(record)}
        size = sum(size for key, size in storages.items() if key not in self._storages)
        if self.dropped or self.kept + size > self.budget:
            self.dropped += 1
            return
        self.kept += size
        self._storages.update(storages)
        self.records.append(record)

    def complete(self) -> "Trace":
        """Return the trace itself.

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
    """Find the memory behind the tensors of a record, which are its fields or in tuples."""
    waiting: list[Any] = [getattr(record, each.name) for each in fields(record)]  # type: ignore[arg-type]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Tensor):
            yield value.untyped_storage()
        elif isinstance(value, tuple):
            waiting.extend(value)


@contextmanager
def record(budget: int = BUDGET, *, gradients: bool = False) -> Iterator[Trace]:
    """Open a recorder for the enclosed forward passes.

    For example `with record() as trace: model(x)`.

    Args:
        budget: the most bytes to keep of them.
        gradients: keep also what gradients of a score are computed from. The passes have to run
            with gradients on, and the trace holds on to their graph, which no budget counts.
    """
    outer = _recorder.trace
    _recorder.trace = trace = Trace(budget=budget, gradients=gradients)
    try:
        yield trace
    finally:
        _recorder.trace = outer


@contextmanager
def overhear() -> Iterator[Trace]:
    """Open a recorder that takes nothing away from the one around it, if there is one."""
    outer = _recorder.trace
    with record() as trace:
        if outer is not None:
            trace.here, trace.moment = outer.here, outer.moment
        yield trace
    if outer is not None:
        outer.here = trace.here
        for entry in trace:
            outer.add(entry)


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
