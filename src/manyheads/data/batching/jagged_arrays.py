"""Sequences of different lengths as one flat array, in memory or in a file.

A Python list of token ids takes 36 bytes per token and one object per sentence; a flat array takes
2 bytes per token, and 8 bytes per sentence for its offset.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np


class Jagged(ABC):
    """Sequences of different lengths: i is values[offsets[i] : offsets[i + 1]]."""

    offsets: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """The number of values of each sequence."""
        return np.diff(self.offsets)

    @abstractmethod
    def rows(self, indices: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        """Return the sequences at these indices."""


class JaggedArray(Jagged):
    """In memory."""

    def __init__(self, values: np.ndarray, offsets: np.ndarray) -> None:
        self.values = values
        self.offsets = offsets

    def rows(self, indices: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        """Return the sequences at these indices."""
        first, end = self.offsets[indices], self.offsets[np.add(indices, 1)]
        return [self.values[a:b] for a, b in zip(first, end, strict=True)]


class JaggedFile(Jagged):
    """In a file: only the offsets are in memory.

    The file is read, not memory-mapped: mapped pages count as memory of the process until another
    process needs them, so a run would seem to grow with its corpus. Reading a short row takes
    some microseconds, and the operating system caches what fits.
    """

    def __init__(self, path: Path, dtype: np.dtype, offsets: np.ndarray) -> None:
        self.path = path
        self.dtype = dtype
        self.offsets = offsets

    def rows(self, indices: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        """Return the sequences at these indices; the file is open only during the call."""
        size = self.dtype.itemsize
        first, end = self.offsets[indices] * size, self.offsets[np.add(indices, 1)] * size
        found = []
        with self.path.open("rb", buffering=0) as file:
            for a, b in zip(first.tolist(), end.tolist(), strict=True):
                file.seek(a)
                found.append(np.frombuffer(file.read(b - a), self.dtype))
        return found


class JaggedWriter:
    """Appends sequences of integers to an open file and records their lengths."""

    def __init__(self, file: IO[bytes], dtype: np.dtype) -> None:
        self.file = file
        self.dtype = dtype
        self._lengths: list[np.ndarray] = []

    def append(self, sequences: Sequence[Sequence[int]]) -> None:
        """Write sequences of integers, or of bytes."""
        lengths = np.fromiter(map(len, sequences), np.int32, len(sequences))
        values = chain.from_iterable(sequences)
        self.file.write(np.fromiter(values, self.dtype, int(lengths.sum())).data)
        self._lengths.append(lengths)

    def offsets(self) -> np.ndarray:
        """Return the start of each sequence, and the end of the last one."""
        return np.concatenate([[0], *self._lengths]).cumsum(dtype=np.int64)


def smallest_dtype(count: int) -> np.dtype:
    """Return the smaller of uint16 and int32 that holds the numbers 0..count - 1."""
    return np.dtype(np.uint16 if count <= 1 << 16 else np.int32)
