"""Images out of the cells of a table: in memory, and from some size on in a temporary file."""

import mmap
import tempfile
import weakref
from typing import IO

from manyheads.errors import DataError

IN_MEMORY = 1 << 26  # bytes


class CellStore:
    """Contents by number. Files of a row format cannot be read at any row; this can.

    It may be read by several threads, and by processes that were forked: a mapped file has no place
    that they share. The file has no name, and goes with the store.
    """

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._room = in_memory
        self._cells: list[bytes | tuple[int, int]] = []  # the content, or its first byte and end
        self._file: IO[bytes] | None = None
        self._view: mmap.mmap | None = None

    def add(self, content: bytes) -> int:
        """Keep a content; return its number.

        Raises:
            DataError: there is no room for the temporary file.
        """
        if len(content) <= self._room:
            self._room -= len(content)
            self._cells.append(content)
        else:
            self._room = 0  # whatever is next goes to the file, too
            self._cells.append(self._write(content))
        return len(self._cells) - 1

    def _write(self, content: bytes) -> tuple[int, int]:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the store
                weakref.finalize(self, self._file.close)
            begin = self._file.tell()
            self._file.write(content)
            self._file.flush()
        except OSError as error:
            raise DataError(
                f"The images do not fit into the temporary folder {tempfile.gettempdir()}: "
                f"{error.strerror}. Make room there, or name another folder in TMPDIR."
            ) from error
        self._view = None
        return begin, begin + len(content)

    def __getitem__(self, number: int) -> bytes:
        cell = self._cells[number]
        if isinstance(cell, bytes):
            return cell
        view = self._view
        if view is None:
            assert self._file is not None
            view = self._view = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return view[slice(*cell)]
