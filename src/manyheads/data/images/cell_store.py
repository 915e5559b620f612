"""Images out of the cells of a table: in memory, and from some size on in a temporary file."""

import os
import tempfile
import weakref
from threading import Lock

from manyheads.errors import DataError

IN_MEMORY = 1 << 26  # bytes


class CellStore:
    """Contents by number. Files of a row format cannot be read at any row; this can.

    It may be read by several threads; the file has no name, and goes with the store.
    """

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._room = in_memory
        self._places: list[tuple[int, int]] = []  # first byte, and length
        self._file = tempfile.SpooledTemporaryFile()  # noqa: SIM115 - open as long as the store
        self._lock = Lock()
        weakref.finalize(self, self._file.close)

    def add(self, content: bytes) -> int:
        """Keep a content; return its number.

        Raises:
            DataError: there is no room for the temporary file.
        """
        try:
            begin = self._file.seek(0, os.SEEK_END)
            if begin + len(content) > self._room:
                self._file.rollover()
            self._file.write(content)
            self._file.flush()
        except OSError as error:
            raise DataError(
                f"The images do not fit into the temporary folder {tempfile.gettempdir()}: "
                f"{error.strerror}. Make room there, or name another folder in TMPDIR."
            ) from error
        self._places.append((begin, len(content)))
        return len(self._places) - 1

    def __getitem__(self, number: int) -> bytes:
        begin, length = self._places[number]
        with self._lock:
            self._file.seek(begin)
            return self._file.read(length)
