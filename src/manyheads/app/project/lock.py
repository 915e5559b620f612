"""One writer a folder: a lock that ends with its process, whatever ends that."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from manyheads.errors import UsageError
from manyheads.files import UNFINISHED

LOCK = ".manyheads-lock"


@contextmanager
def locked(folder: Path, work: str = "trains") -> Iterator[None]:
    """Keep other writers out of a folder, which is made; it goes again if it stays empty.

    Args:
        folder: what is written to.
        work: what all who lock such a folder do there, for the message.

    Raises:
        UsageError: another process works there; the message names it.
    """
    if folder.exists() and not folder.is_dir():
        yield  # a file, which nobody can train into
        return
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    file = _take(path, work)
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


def _take(path: Path, work: str) -> IO[str]:
    """Lock a file, and write into it who did."""
    while True:
        file = path.open("a+", encoding="utf-8")
        if not _exclusive(file):
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise UsageError(
                f"{path.parent} is in use: {holder} {work} there. Wait until it has ended, or "
                "choose another `out`."
            )
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                file.truncate(0)
                file.write(f"process {os.getpid()} on {socket.gethostname()}")
                file.flush()
                return file
        file.close()  # removed meanwhile by the process that had it: a lock on nothing


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
