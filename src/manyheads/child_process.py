"""Processes that another process of this package starts: how they begin, and tell of errors."""

import os
import signal
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.reduction import ForkingPickler
from threading import Thread

from manyheads.errors import ManyheadsError
from manyheads.memory import keep_freed_memory


def begin_child(*ignored: signal.Signals) -> None:
    """Ignore signals that the parent handles, and end with the parent, also after `kill -9`.

    Call it before torch takes memory: what is freed is kept, which makes a search faster.
    """
    for each in ignored:
        signal.signal(each, signal.SIG_IGN)
    Thread(target=_end_with_parent, name="parent", daemon=True).start()
    keep_freed_memory()


def portable(error: BaseException) -> ManyheadsError | None:
    """Return an error that another process can read as it is; None if it cannot, or is not ours."""
    if isinstance(error, ManyheadsError):
        with suppress(Exception):
            ForkingPickler.loads(ForkingPickler.dumps(error))
            return error
    return None


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
