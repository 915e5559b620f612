"""Sequences of different lengths as one flat array, in memory or in a file.

A Python list of token ids takes 36 bytes a token and an object a sentence; a flat array takes two,
and 8 bytes a sentence for where it begins.
"""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Protocol

import numpy as np


class Rows(Protocol):
    """Many sequences, wherever they are kept."""

    @property
    def lengths(self) -> np.ndarray:
        """The number of values of each sequence."""

    def rows(self, indices: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        """Return some of the sequences."""


class Ragged:
    """In memory: sequence i is values[offsets[i] : offsets[i + 1]]."""

    def __init__(self, values: np.ndarray, offsets: np.ndarray) -> None:
        self.values = values
        self.offsets = offsets

    @property
    def lengths(self) -> np.ndarray:
        """The number of values of each sequence."""
        return np.diff(self.offsets)

    def rows(self, indices: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        """Return some of the sequences."""
        first, end = self.offsets[indices], self.offsets[np.add(indices, 1)]
        return [self.values[a:b] for a, b in zip(first, end, strict=True)]


class RaggedFile:
    """In a file: only the offsets are held.

    Read, not mapped: the pages of a mapped file count as memory of the process for as long as
    nothing else needs it, so a run would seem to grow with its corpus. Reading a short row takes
    some microseconds, and the operating system keeps what it has room for.
    """

    def __init__(self, path: Path, dtype: np.dtype, offsets: np.ndarray) -> None:
        self.path = path
        self.dtype = dtype
        self.offsets = offsets

    @property
    def lengths(self) -> np.ndarray:
        """The number of values of each sequence."""
        return np.diff(self.offsets)

    def rows(self, indices: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        """Return some of the sequences; the file is open only here."""
        size = self.dtype.itemsize
        first, end = self.offsets[indices] * size, self.offsets[np.add(indices, 1)] * size
        found = []
        with self.path.open("rb", buffering=0) as file:
            for a, b in zip(first.tolist(), end.tolist(), strict=True):
                file.seek(a)
                found.append(np.frombuffer(file.read(b - a), self.dtype))
        return found


class RaggedWriter:
    """Appends sequences of integers to an open file, and remembers their lengths."""

    def __init__(self, file: IO[bytes], dtype: np.dtype) -> None:
        self.file = file
        self.dtype = dtype
        self._lengths: list[np.ndarray] = []

    def append(self, sequences: Sequence[Sequence[int]]) -> None:
        """Write some sequences; bytes are sequences of integers too."""
        lengths = np.fromiter(map(len, sequences), np.int32, len(sequences))
        values = chain.from_iterable(sequences)
        self.file.write(np.fromiter(values, self.dtype, int(lengths.sum())).data)
        self._lengths.append(lengths)

    def offsets(self) -> np.ndarray:
        """Say where each sequence begins, and where the last one ends."""
        return np.concatenate([[0], *self._lengths]).cumsum(dtype=np.int64)


def smallest_integers(count: int) -> np.dtype:
    """Return the type to keep the numbers 0..count - 1 in: two bytes if they suffice, or four."""
    return np.dtype(np.uint16 if count <= 1 << 16 else np.int32)
