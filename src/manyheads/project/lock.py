"""One writer a folder: a lock that ends with its process, whatever ends that."""

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from manyheads.errors import UsageError
from manyheads.files import UNFINISHED, reject_address

LOCK = ".manyheads-lock"
_PAUSE = 0.1  # seconds between two tries of a process that waits
_TRIES = 100  # to make a folder that others who leave may remove


@contextmanager
def locked(folder: Path, work: str = "trains", *, wait: bool = False) -> Iterator[None]:
    """Keep other writers out of a folder, which is made; it goes again if it stays empty.

    Args:
        folder: what is written to.
        work: what all who lock such a folder do there, for the message.
        wait: until no other process works there.

    Raises:
        UsageError: another process works there, and `wait` is not set; the message names it. Or
            `folder` is an address.
    """
    reject_address(folder)
    if folder.exists() and not folder.is_dir():
        yield  # a file, which nobody can train into
        return
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    path = folder / LOCK
    file = _take(path, work, wait=wait)
    try:
        yield
    finally:
        with suppress(PermissionError):  # Windows keeps a file that is open
            path.unlink(missing_ok=True)
        file.close()
        with suppress(OSError):  # something is in it
            for each in made:
                each.rmdir()


def remove_abandoned(folder: Path) -> None:
    """Remove the unfinished folders in a folder that were locked by processes that have died."""
    for lock in folder.glob(f"{UNFINISHED.format('*')}/{LOCK}"):
        with suppress(OSError), lock.open("a+", encoding="utf-8") as file:
            if not _exclusive(file):
                continue
        shutil.rmtree(lock.parent, ignore_errors=True)


def _take(path: Path, work: str, *, wait: bool) -> IO[str]:
    """Lock a file in a folder, which is made, and write into it who did."""
    while True:
        file = _open(path)
        while not _exclusive(file):
            if not wait:
                file.seek(0)
                holder = file.read().strip() or "another process"
                file.close()
                raise UsageError(
                    f"{path.parent} is in use: {holder} {work} there. Wait until it has ended, or "
                    "choose another `out`."
                )
            time.sleep(_PAUSE)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                file.truncate(0)
                file.write(f"process {os.getpid()} on {socket.gethostname()}")
                file.flush()
                return file
        file.close()  # removed meanwhile by the process that had it: a lock on nothing


def _open(path: Path) -> IO[str]:
    """Open a file in a folder, which is made and which a process that leaves may just remove."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError, FileExistsError):
            path.parent.mkdir(parents=True, exist_ok=True)
            return path.open("a+", encoding="utf-8")
        time.sleep(_PAUSE / _TRIES)
    path.parent.mkdir(parents=True, exist_ok=True)  # nobody removes it: it is a link to nothing
    return path.open("a+", encoding="utf-8")


def _exclusive(file: IO[str]) -> bool:
    """Lock an open file until it is closed or its process ends; False if another has it."""
    try:
        import fcntl
    except ImportError:  # Windows: lock a byte behind the text
        import msvcrt

        file.seek(1 << 20)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: as before there were any
        return True
    return True
