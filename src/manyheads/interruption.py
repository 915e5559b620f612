"""Ctrl-C while the command is imported, when nothing else can explain it yet: end with 130.

Libraries may report another error when Ctrl-C interrupts their import, or none at all. Importing
this module takes over SIGINT if the program is the command `manyheads`, and of no other program.
"""

import os
import signal
import sys
from types import FrameType


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"manyheads: interrupted.\n")
    os._exit(130)


def restore() -> None:
    """Let SIGINT raise KeyboardInterrupt again: the command can handle it now."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# What Python was told to run, as a script or behind -m; in `sys.argv` it is replaced.
_program = "".join(sys.orig_argv[-len(sys.argv) :][:1])
if (
    os.path.basename(_program) == "manyheads"  # noqa: PTH119 - pathlib takes time to import
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not ignored
):
    signal.signal(signal.SIGINT, _end)
