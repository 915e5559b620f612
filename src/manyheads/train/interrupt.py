"""Stop signals: the loop checks after each step whether Ctrl-C was pressed, and saves."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from types import FrameType

SECONDS = 3.0
PAUSE = 1.0  # seconds between two looks at whether torchrun is there
SIGNALS = [getattr(signal, n) for n in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, n)]


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether to stop: Ctrl-C, SIGTERM, or a closed terminal.

    Another Ctrl-C raises KeyboardInterrupt at once, if it comes `SECONDS` after the first: two at
    once are one to whoever pressed twice, or has two programs that pass it on.
    """
    first: float | None = None

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal first
        now = time.monotonic()
        first = now if first is None else first
        if number == signal.SIGINT and now - first >= SECONDS:
            raise KeyboardInterrupt

    try:
        earlier = {
            each: signal.signal(each, handle)
            for each in SIGNALS
            # One who uses nohup wants to go on without a terminal.
            if each in (signal.SIGINT, signal.SIGTERM) or signal.getsignal(each) != signal.SIG_IGN
        }
    except ValueError:  # not the main thread: the caller handles signals
        earlier = {}
    try:
        yield lambda: first is not None
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


@contextmanager
def stop_with_torchrun() -> Iterator[None]:
    """Send this process SIGTERM when the torchrun that started it has ended, also by `kill -9`."""
    over = Event()
    if "TORCHELASTIC_RUN_ID" in os.environ:
        Thread(target=_watch, args=(os.getppid(), over), name="torchrun", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _watch(parent: int, over: Event) -> None:
    while not over.wait(PAUSE):
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
            return
