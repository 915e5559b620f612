"""Freed memory stays with the process: docs/decisions/memory.md."""

import ctypes
import os
import sys

# Of mallopt, from glibc's malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_TOP = 64 << 20


def keep_freed_memory() -> None:
    """Tell the allocator not to give freed tensors back to the system, only to take them again.

    A step of training frees as much as it takes. Every page that was given back is fetched once
    more, and cleared, when the next step touches it. Does nothing where the C library is another
    one than glibc, or where the user has settings of their own in the environment.
    """
    own = any(name == "GLIBC_TUNABLES" or name.startswith("MALLOC_") for name in os.environ)
    if own or not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_MAX, 0)
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(_TOP_PAD, _TOP)
