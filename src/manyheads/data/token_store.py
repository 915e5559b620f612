"""A corpus as token ids: encoded once, and kept in memory or, if it is large, in files.

    FOLDER/KEY/source.ids  source.ids.offsets.npy  target.ids  ...   and the texts, if asked for

The key says what the files were made from, so a resumed run finds its own and nobody else's.
"""

import io
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from manyheads.data.ragged import Ragged, RaggedFile, RaggedWriter, Rows, smallest_integers
from manyheads.data.tokenizer import Tokenizers

CHUNK = 10_000  # pairs encoded at a time
BYTE = np.dtype(np.uint8)


@dataclass(frozen=True)
class TokenStore:
    """Source and target of each pair, as token ids without start and end, and perhaps as text."""

    ids: tuple[Rows, Rows]
    utf8: tuple[Rows, Rows] | None = None  # for subwords that are sampled anew each epoch

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.ids[0].lengths)

    def tokens(self, indices: np.ndarray) -> tuple[list[list[int]], list[list[int]]]:
        """Return the sources and the targets of some pairs as token ids."""
        source, target = ([row.tolist() for row in side.rows(indices)] for side in self.ids)
        return source, target

    def texts(self, indices: np.ndarray) -> tuple[list[str], list[str]]:
        """Return the sources and the targets of some pairs as text, if the store was told to."""
        assert self.utf8 is not None
        source, target = ([bytes(row).decode() for row in side.rows(indices)] for side in self.utf8)
        return source, target


def encode_in_memory(
    pairs: Iterable[tuple[str, str]], tokenizers: Tokenizers, *, texts: bool = False
) -> TokenStore:
    """Encode a corpus that fits into memory."""
    dtypes = _dtypes(tokenizers, texts)
    buffers = [io.BytesIO() for _ in dtypes]
    writers = [
        RaggedWriter(buffer, dtype) for buffer, dtype in zip(buffers, dtypes.values(), strict=True)
    ]
    _encode(pairs, tokenizers, writers)
    return _store(
        [
            Ragged(np.frombuffer(buffer.getvalue(), writer.dtype), writer.offsets())
            for buffer, writer in zip(buffers, writers, strict=True)
        ]
    )


def encode_on_disk(
    pairs: Iterable[tuple[str, str]],
    tokenizers: Tokenizers,
    folder: Path,
    key: str,
    *,
    texts: bool = False,
) -> TokenStore:
    """Encode a corpus into files under `folder`, or take those that are there under the same key.

    A kill leaves no half-written files to be mistaken for whole ones; what other keys left is
    removed.
    """
    dtypes = _dtypes(tokenizers, texts)
    home = folder / key
    found = _open(home, dtypes)
    if found is not None:
        return found
    shutil.rmtree(folder, ignore_errors=True)
    partial = folder / f"partial-{os.getpid()}"
    partial.mkdir(parents=True)
    with ExitStack() as files:
        writers = [
            RaggedWriter(files.enter_context((partial / name).open("wb")), dtype)
            for name, dtype in dtypes.items()
        ]
        _encode(pairs, tokenizers, writers)
    for name, writer in zip(dtypes, writers, strict=True):
        np.save(_offsets(partial / name), writer.offsets())
    partial.rename(home)
    found = _open(home, dtypes)
    assert found is not None
    return found


def _encode(
    pairs: Iterable[tuple[str, str]], tokenizers: Tokenizers, writers: Sequence[RaggedWriter]
) -> None:
    pairs = iter(pairs)
    while chunk := list(islice(pairs, CHUNK)):
        sources, targets = [source for source, _ in chunk], [target for _, target in chunk]
        writers[0].append(tokenizers.source.encode(sources))
        writers[1].append(tokenizers.target.encode(targets))
        for writer, texts in zip(writers[2:], (sources, targets), strict=False):
            writer.append([text.encode() for text in texts])


def _open(home: Path, dtypes: dict[str, np.dtype]) -> TokenStore | None:
    """Open the files of a store; None if they are not there as they were written."""
    rows: list[Rows] = []
    for name, dtype in dtypes.items():
        path = home / name
        try:
            offsets = np.load(_offsets(path))
            size = path.stat().st_size
        except (OSError, ValueError, EOFError):
            return None
        if size != int(offsets[-1]) * dtype.itemsize:
            return None
        rows.append(RaggedFile(path, dtype, offsets))
    return _store(rows)


def _store(rows: Sequence[Rows]) -> TokenStore:
    source, target, *texts = rows
    return TokenStore((source, target), (texts[0], texts[1]) if texts else None)


def _offsets(path: Path) -> Path:
    return path.with_name(f"{path.name}.offsets.npy")


def _dtypes(tokenizers: Tokenizers, texts: bool) -> dict[str, np.dtype]:
    ids = {
        "source.ids": smallest_integers(len(tokenizers.source)),
        "target.ids": smallest_integers(len(tokenizers.target)),
    }
    return ids | ({"source.text": BYTE, "target.text": BYTE} if texts else {})
