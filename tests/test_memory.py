"""Freed memory stays with the process: seen in a process of its own, by the pages it fetches."""

import os
import platform
import resource
import subprocess
import sys

import pytest

SIZE = 80 << 20  # more than malloc would ever keep by itself
PAGES = SIZE // resource.getpagesize()  # of 4 KiB on x86-64, up to 64 KiB on ARM
FAULTS = f"""
import ctypes
import resource
from manyheads.memory import keep_freed_memory

ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: some systems give pages of 2 MiB
keep_freed_memory()
for turn in range(5):
    if turn == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(b"x") * {SIZE}
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _faults(**environment: str) -> int:
    clean = {
        name: value
        for name, value in os.environ.items()
        if name != "GLIBC_TUNABLES" and not name.startswith("MALLOC_")
    }
    found = subprocess.run(
        [sys.executable, "-c", FAULTS],
        env=clean | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return int(found.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_memory_that_was_freed_is_taken_again_without_asking_the_system() -> None:
    assert _faults() < PAGES / 10  # four turns would fetch four times PAGES
    # Somebody who has settings of their own keeps them.
    assert _faults(MALLOC_TRIM_THRESHOLD_="131072") > PAGES / 10


GAPS = """
import threading
import time
from pathlib import Path
from manyheads import memory

def held():
    return int(Path("/proc/self/statm").read_text().split()[1])

memory._EVERY = 0.5
memory.keep_freed_memory()
memory.keep_freed_memory()
assert threading.active_count() == 2
pieces = [bytearray(b"x") * (1 << 20) for _ in range(200)]
full = held()
del pieces[::2]  # every other one: no end of the heap is free
gaps = held()
deadline = time.monotonic() + 60
while held() > full * 0.7 and time.monotonic() < deadline:
    time.sleep(0.1)
print(gaps > 0.9 * full, held() <= 0.7 * full)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the setting is glibc's")
def test_gaps_are_given_back_now_and_then() -> None:
    """At once nothing is; a little later half of the memory."""
    command = [sys.executable, "-c", GAPS]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert found.stdout.split() == ["True", "True"]


COLLECTIONS = """
import gc
from manyheads.memory import without_collection

with without_collection():
    during = gc.isenabled()
    kept = [[] for _ in range(100_000)]
print(during, gc.isenabled(), gc.get_freeze_count() >= len(kept))
try:
    with without_collection():
        raise ImportError
except ImportError:
    print(gc.isenabled())
"""


def test_imports_without_collections() -> None:
    """None runs meanwhile; later ones leave out what was made; after an error they go on."""
    command = [sys.executable, "-c", COLLECTIONS]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False", "True", "True", "True"]
