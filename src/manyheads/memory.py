"""How much memory there is, and too little; freed memory stays: docs/decisions/memory.md."""

import ctypes
import errno
import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Thread

# Of mallopt, from glibc's malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_TOP = 64 << 20
_EVERY = 30.0  # seconds
_OF_TORCH = ("can't allocate memory", "not enough memory", "bad_alloc", "out of memory")


def keep_freed_memory() -> None:
    """Tell the allocator to give freed tensors back to the system twice a minute only.

    A step of training frees as much as it takes. Every page that was given back is fetched once
    more, and cleared, when the next step touches it. But steps of many sizes leave gaps that none
    of the next fits, and if nothing was ever given back, a process would grow for hours. Does
    nothing where the C library is another one than glibc, or where the user has settings of their
    own in the environment.
    """
    own = any(name == "GLIBC_TUNABLES" or name.startswith("MALLOC_") for name in os.environ)
    if own or not sys.platform.startswith("linux"):
        return
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt") or not hasattr(library, "malloc_trim"):
        return
    library.mallopt(_MMAP_MAX, 0)
    library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
    library.mallopt(_TOP_PAD, _TOP)
    _give_back_now_and_then()


@cache
def _give_back_now_and_then() -> None:
    trim = ctypes.CDLL(None).malloc_trim

    def give_back() -> None:
        while True:
            time.sleep(_EVERY)
            trim(0)

    def start() -> None:
        Thread(target=give_back, name="give back freed memory", daemon=True).start()

    start()
    os.register_at_fork(after_in_child=start)  # the setting survives a fork, a thread does not


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause Python's garbage collector while a process imports what it keeps until it ends.

    Importing torch makes hundreds of thousands of objects, and collections that search them in
    vain take a sixth of the time. Later collections leave them out.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if enabled:
            gc.enable()


def available_memory() -> int | None:
    """Return how many bytes the process can still take; None where the system does not say.

    A container's limit counts too, but not what is used of it: that includes files in the cache.
    """
    limits = []
    try:
        facts = dict(
            line.split(":") for line in Path("/proc/meminfo").read_text("utf-8").splitlines()
        )
        limits.append(1024 * int(facts["MemAvailable"].split()[0]))
    except (OSError, ValueError, KeyError):  # not Linux
        with suppress(AttributeError, ValueError, OSError):
            limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # cgroups, version 2 and 1
        with suppress(OSError, ValueError):  # "max": no limit
            limits.append(int((Path("/sys/fs/cgroup") / name).read_text("utf-8")))
    return min(limits, default=None)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory could not be had, of the machine or of a GPU."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    # torch raises a RuntimeError for the processor's memory, and a kind of its own for a GPU's.
    of_torch = isinstance(error, RuntimeError) and (
        type(error).__name__ == "OutOfMemoryError"
        or any(words in str(error) for words in _OF_TORCH)
    )
    return of_torch or isinstance(error, MemoryError)
