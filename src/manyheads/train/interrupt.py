"""Stop signals: the loop checks after each step whether Ctrl-C was pressed, and saves."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C or SIGTERM arrived; a second one interrupts."""
    stop = False

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal stop
        if stop:
            raise KeyboardInterrupt
        stop = True

    try:
        earlier = {each: signal.signal(each, handle) for each in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: the caller handles signals
        earlier = {}
    try:
        yield lambda: stop
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
