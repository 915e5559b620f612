"""How a process begins that another process of this package has started."""

import os
import signal
from multiprocessing import parent_process
from threading import Thread

from manyheads.memory import keep_freed_memory


def begin_child(*ignored: signal.Signals) -> None:
    """Ignore signals that the parent handles, and end with the parent, also after `kill -9`.

    Call it before torch takes memory: what is freed is kept, which makes a search faster.
    """
    for each in ignored:
        signal.signal(each, signal.SIG_IGN)
    Thread(target=_end_with_parent, name="parent", daemon=True).start()
    keep_freed_memory()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
