"""The one writer: files appear whole or not at all, and never in the place of what is read."""

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO

from manyheads.errors import OutputError, UsageError

UNFINISHED = ".manyheads-{}.part"  # the name of what is being written; nobody else's file has it


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends without an error.

    Until then what was there before stays as it is. Its permissions are kept, and missing parent
    folders are made. Of a symbolic link the target is written; a pipe or a device is written into
    as it is.

    Raises:
        OutputError: it cannot be written: the disk is full, the folder is read-only, ...
    """
    named = Path(path)
    with output_errors(named):
        before = _status(named)
        temporary = None
        if before is None or stat.S_ISREG(before.st_mode):
            target = Path(os.path.realpath(named))
            target.parent.mkdir(parents=True, exist_ok=True)
            if before is not None:
                os.close(os.open(target, os.O_WRONLY))  # refused if it is write-protected
            temporary = target.with_name(UNFINISHED.format(token_hex(8)))
        file = BufferedWriter(_File(temporary or named, "w" if temporary is None else "x", named))
    try:
        with file:
            yield file
            if temporary is not None:
                file.flush()
                with output_errors(named):
                    os.fsync(file.fileno())
        if temporary is not None:
            with output_errors(named):
                if before is not None:
                    _keep(before, temporary)
                temporary.replace(target)
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all, as `writing` does."""
    with writing(path) as file:
        file.write(content)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    r"""Write UTF-8 as `write_atomically` does.

    Lone surrogates, as in names of files that are not UTF-8, are written as \udcff: in JSON they
    are read back as they were.
    """
    write_atomically(path, text.encode("utf-8", "backslashreplace"))


def append_line(path: Path, line: str) -> None:
    """Add a line to a file, whole or not at all."""
    content = f"{line}\n".encode("utf-8", "backslashreplace")
    with output_errors(path), path.open("ab", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        try:
            written = file.write(content)
            if written < len(content):
                file.write(content[written:])  # says why it did not take the rest
        except OSError:
            file.truncate(size)
            raise


def append_bytes(path: Path, content: bytes, *, behind: int) -> None:
    """Write to a file behind its first bytes, in place of what is there, and flush it to disk.

    Args:
        path: of the file.
        content: whole or not at all: after an error the file ends with its first bytes.
        behind: the number of its first bytes.

    Raises:
        OutputError: it cannot be written.
    """
    with output_errors(path), path.open("r+b", buffering=0) as file:
        file.truncate(behind)
        file.seek(behind)
        rest = memoryview(content)
        try:
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(behind)
            raise


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Give a folder to write into; it becomes `out` when all is written, or goes.

    `out` must be new or empty.

    Raises:
        OutputError: it cannot be written.
    """
    target = Path(os.path.realpath(out))
    folder = target.with_name(UNFINISHED.format(token_hex(8)))
    with output_errors(out):
        folder.mkdir(parents=True)
    try:
        yield folder
        with output_errors(out):
            for path in (*folder.rglob("*"), folder):
                flush(path)
            if target.exists():
                target.rmdir()  # empty
            folder.rename(target)  # atomic: from here on it exists
            flush(target.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_unfinished(folder: Path) -> None:
    """Remove what a killed process was in the middle of writing to a folder."""
    for path in folder.glob(UNFINISHED.format("*")):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def output_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error of the operating system into one that names the file to be written."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error.strerror or str(error)) from error


def cannot_write(path: str | os.PathLike[str], reason: str) -> OutputError:
    """Return the error about a file or folder that cannot be written."""
    reason = f"{reason[:1].lower()}{reason[1:]}".rstrip(".")
    return OutputError(
        f"{Path(path)} cannot be written: {reason}. What was there before is as it was. Make room, "
        "or choose a place that you may write to."
    )


def reject_inputs(output: Path, inputs: Iterable[str | os.PathLike[str] | int | None]) -> None:
    """Refuse to write over what is read, whatever its path is spelled like.

    Args:
        output: the file to be written.
        inputs: files, folders with all that is in them, or open files by their number; None, and
            paths where nothing is, are passed over.

    Raises:
        UsageError: `output` is one of them, also by a symbolic or hard link.
    """
    there = _status(output)
    if there is None or not stat.S_ISREG(there.st_mode):
        return
    for source in inputs:
        for path in [] if source is None else _with_content(source):
            with suppress(OSError, ValueError):  # not there; a text that can be no path
                if os.path.samestat(os.stat(path), there):  # noqa: PTH116 - also by number
                    name = "the standard input" if isinstance(path, int) else os.fspath(path)
                    raise UsageError(
                        f"{output} would be written over, but it is read from ({name}): choose "
                        "another name."
                    )


def reject_address(output: Path) -> None:
    """Refuse to write where an address leads, such as s3://bucket/x: Path makes s3:/bucket/x of it.

    Raises:
        UsageError: `output` is an address.
    """
    if (first := output.parts[:1]) and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]+:", first[0]):
        raise UsageError(
            f"{str(output)!r} is an address ({first[0]}//), and results are written here "
            "only: give a path on this machine, and copy the result afterwards."
        )


def expand_user(path: str | os.PathLike[str]) -> Path:
    """Put a home folder in the place of ~; of a user who does not exist it stays as it is."""
    with suppress(RuntimeError):
        return Path(path).expanduser()
    return Path(path)


class _File(FileIO):
    """A file whose failed writes name the file that was to be written."""

    def __init__(self, path: Path, mode: str, named: Path) -> None:
        super().__init__(path, mode)
        self._named = named

    def write(self, data: Any) -> int:
        """Write bytes."""
        with output_errors(self._named):
            return super().write(data)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _keep(before: os.stat_result, path: Path) -> None:
    """Give a file the owner, where that is allowed, and the permissions of the one it replaces."""
    with suppress(OSError, AttributeError):  # Windows has no owners by number
        os.chown(path, before.st_uid, before.st_gid)
    path.chmod(stat.S_IMODE(before.st_mode))


def _with_content(path: str | os.PathLike[str] | int) -> Iterator[str | os.PathLike[str] | int]:
    yield path
    if not isinstance(path, int) and os.path.isdir(path):  # noqa: PTH112 - never raises
        for folder, _, names in os.walk(path):
            yield from (os.path.join(folder, name) for name in names)  # noqa: PTH118 - many: fast


def flush(path: Path) -> None:
    """Flush a file or folder to disk."""
    if os.name == "nt" and path.is_dir():
        return  # cannot be opened there
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
