"""Stop work whose client has left.

Long loops call `raise_if_cancelled` between their steps. It does nothing unless the thread is
inside `cancellable`, whose check then decides.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_local = threading.local()


class WorkCancelledError(Exception):
    """The client that asked for the work has left."""


@contextmanager
def cancellable(cancelled: Callable[[], bool]) -> Iterator[None]:
    """Inside the context, work of this thread ends between two steps once `cancelled` is true."""
    before = getattr(_local, "cancelled", None)
    _local.cancelled = cancelled
    try:
        yield
    finally:
        _local.cancelled = before


def raise_if_cancelled() -> None:
    """Raise WorkCancelledError if the work of this thread was cancelled."""
    cancelled = getattr(_local, "cancelled", None)
    if cancelled is not None and cancelled():
        raise WorkCancelledError
