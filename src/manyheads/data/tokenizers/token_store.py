"""A corpus as token ids: encoded once, kept in memory or, if it is large, in files.

    FOLDER/KEY/source.ids  source.ids.offsets.npy  target.ids  ...   and optionally the texts

The key identifies the data and tokenizer, so a resumed run finds only matching files. A Python list
of token ids takes 36 bytes per token and one object per sentence; a flat array takes 2 bytes per
token, and 8 bytes per sentence for its offset.
"""

import io
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np

from manyheads.data.tokenizers.tokenizer import Tokenizers
from manyheads.files import new_folder, output_errors, writing


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


CHUNK = 10_000  # pairs encoded at a time
BYTE = np.dtype(np.uint8)
Pairs = Iterable[tuple[str, str]]  # texts


@dataclass(frozen=True)
class TokenStore:
    """Source and target of each pair as token ids without start and end, optionally as text."""

    ids: tuple[Jagged, Jagged]
    utf8: tuple[Jagged, Jagged] | None = None  # the texts, for subword sampling

    def __len__(self) -> int:
        return len(self.ids[0].lengths)

    def tokens(self, indices: np.ndarray) -> tuple[list[list[int]], list[list[int]]]:
        """Return the sources and the targets of some pairs as token ids."""
        source, target = ([row.tolist() for row in side.rows(indices)] for side in self.ids)
        return source, target

    def texts(self, indices: np.ndarray) -> tuple[list[str], list[str]]:
        """Return the sources and the targets of some pairs as text, if the store has texts."""
        assert self.utf8 is not None
        source, target = ([bytes(row).decode() for row in side.rows(indices)] for side in self.utf8)
        return source, target


def encode_in_memory(pairs: Pairs, tokenizers: Tokenizers, *, texts: bool = False) -> TokenStore:
    """Encode a corpus that fits into memory."""
    dtypes = _dtypes(tokenizers, texts)
    buffers = [io.BytesIO() for _ in dtypes]
    writers = list(map(JaggedWriter, buffers, dtypes.values()))
    _encode(pairs, tokenizers, writers)
    values = map(np.frombuffer, (buffer.getvalue() for buffer in buffers), dtypes.values())
    return _store([JaggedArray(v, w.offsets()) for v, w in zip(values, writers, strict=True)])


def encode_on_disk(
    pairs: Pairs, tokenizers: Tokenizers, folder: Path, key: str, *, texts: bool = False
) -> TokenStore:
    """Encode a corpus into files under `folder`, or reuse the files with the same key.

    Files are written atomically; files of other keys are removed.
    """
    dtypes = _dtypes(tokenizers, texts)
    final = folder / key
    if (found := _open(final, dtypes)) is not None:
        return found
    shutil.rmtree(folder, ignore_errors=True)
    with new_folder(final) as partial:
        with ExitStack() as files:
            opened = [files.enter_context(writing(partial / name)) for name in dtypes]
            writers = list(map(JaggedWriter, opened, dtypes.values()))
            _encode(pairs, tokenizers, writers)
        for name, writer in zip(dtypes, writers, strict=True):
            with output_errors(final):
                np.save(_offsets(partial / name), writer.offsets())
    found = _open(final, dtypes)
    assert found is not None
    return found


def _encode(pairs: Pairs, tokenizers: Tokenizers, writers: Sequence[JaggedWriter]) -> None:
    pairs = iter(pairs)
    while chunk := list(islice(pairs, CHUNK)):
        sources, targets = [source for source, _ in chunk], [target for _, target in chunk]
        writers[0].append(tokenizers.source.encode(sources))
        writers[1].append(tokenizers.target.encode(targets))
        for writer, texts in zip(writers[2:], (sources, targets), strict=False):
            writer.append([text.encode() for text in texts])


def _open(folder: Path, dtypes: dict[str, np.dtype]) -> TokenStore | None:
    """Open the files of a store; None if they are missing or incomplete."""
    rows: list[Jagged] = []
    for name, dtype in dtypes.items():
        path = folder / name
        try:
            offsets = np.load(_offsets(path))
            size = path.stat().st_size
        except (OSError, ValueError, EOFError):
            return None
        if size != int(offsets[-1]) * dtype.itemsize:
            return None
        rows.append(JaggedFile(path, dtype, offsets))
    return _store(rows)


def _store(rows: Sequence[Jagged]) -> TokenStore:
    source, target, *texts = rows
    return TokenStore((source, target), (texts[0], texts[1]) if texts else None)


def _offsets(path: Path) -> Path:
    return path.with_name(f"{path.name}.offsets.npy")


def _dtypes(tokenizers: Tokenizers, texts: bool) -> dict[str, np.dtype]:
    ids = {f"{side}.ids": smallest_dtype(len(t)) for side, t in tokenizers._asdict().items()}
    return ids | ({"source.text": BYTE, "target.text": BYTE} if texts else {})
