"""Corpora: parallel text in memory, or larger than memory and read again; single sentences."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import mode
from typing import Any

import numpy as np

from manyheads.data.text.formats import Pair, Wanted, corpus_files, read_pairs
from manyheads.data.text.lines import content_hash, lines
from manyheads.data.text.rows import HUB
from manyheads.data.text.word_links import Link
from manyheads.errors import DataError
from manyheads.streams import generator


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs and the files that they come from."""

    source: list[str]
    target: list[str]
    origin: str
    first_line: int = 1
    groups: list[str] | None = None  # a kind for each pair, reported separately in evaluation
    hashes: tuple[str, ...] = ()  # sha256 of each file, for the register of splits
    test: bool = False  # generated for testing, so no file can be registered
    lines: Sequence[int] = ()  # line of each pair, if not one per line from first_line on
    links: Sequence[Sequence[Link]] | None = None  # for each pair, its word links
    others: Sequence[Sequence[str]] = ()  # for each pair, further right translations

    @property
    def references(self) -> list[list[str]]:
        """All right translations of each source: its target first."""
        others = self.others or [()] * len(self)
        return [[target, *more] for target, more in zip(self.target, others, strict=True)]

    @classmethod
    def of(cls, pairs: Sequence[Pair], origin: str, hashes: tuple[str, ...]) -> "Corpus":
        """Build a corpus from the pairs of a reader."""
        numbers = [pair.line for pair in pairs]
        return cls(
            [pair.source for pair in pairs],
            [pair.target for pair in pairs],
            origin,
            hashes=hashes,
            lines=() if numbers == list(range(1, len(pairs) + 1)) else numbers,
        )

    def __len__(self) -> int:
        return len(self.source)

    def select(self, indices: np.ndarray) -> "Corpus":
        """Take the pairs at these indices; they keep their lines."""
        columns: dict[str, Any] = {
            name: [values[i] for i in indices]
            for name in ("source", "target", "groups", "links", "others")
            if (values := getattr(self, name))
        }
        lines = self.lines or range(self.first_line, self.first_line + len(self))
        return replace(self, **columns, lines=[lines[i] for i in indices])

    def sample(self, seed: int) -> tuple[list[str], list[str]]:
        """Return all sources and targets; `StreamedCorpus.sample` draws some."""
        return self.source, self.target

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield all (source, target) pairs, in order."""
        return zip(self.source, self.target, strict=True)

    def describe(self, indices: Iterable[int]) -> str:
        """Return the file and line numbers of pairs, for messages."""
        lines = (self.lines[i] if self.lines else int(i) + self.first_line for i in indices)
        return name_lines(self.origin, lines)


def read_references(path: Path, sources: Sequence[str]) -> tuple[list[list[str]], str]:
    """Read a .tsv file of sources, each with any number of translations; return them, and a sha256.

    Raises:
        NotFoundError: there is no such file.
        DataError: a line has another source than these, or no translation.
    """
    references: dict[str, list[str]] = {}
    for number, text in lines(path):
        source, *translations = (text or "").split("\t")
        if not any(translations):
            raise DataError(f"{path}, line {number}: a source, a tab, and its translations.")
        references.setdefault(source, []).extend(filter(None, translations))
    if missing := [source for source in sources if source not in references]:
        raise DataError(
            f"{path} has no translations of {len(missing):,} of {len(sources):,} sources, such as "
            f"{missing[0]!r:.80}: give the references of these data."
        )
    return [references[source] for source in sources], content_hash(path)


def name_lines(origin: str, numbers: Iterable[int]) -> str:
    """Return a file name with up to eight line numbers, sorted."""
    numbers = sorted(numbers)
    shown = ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
    return f"{origin}, {'line' if len(numbers) == 1 else 'lines'} {shown}"


def read_lines(path: Path) -> tuple[list[str], str]:
    """Read a UTF-8 file; return its lines and the file's sha256."""
    return [text for _, text in lines(path) if text is not None], content_hash(path)


def read_parallel(
    path: str | Path, source: str, target: str, columns: Wanted = (None, None)
) -> Corpus:
    """Read sentence pairs of any format of `read_pairs` into memory."""
    pairs = list(read_pairs(path, source, target, columns=columns))
    return Corpus.of(pairs, origin(path, source, target), hashes(path, source, target))


def origin(path: str | Path, source: str, target: str) -> str:
    """Return a corpus name for messages: stem.{en,de} for two files."""
    two = len(corpus_files(path, source, target)) == 2
    return f"{path}.{{{source},{target}}}" if two else str(path)


def hashes(path: str | Path, source: str, target: str) -> tuple[str, ...]:
    """Return the sha256 of the content of each file, for the register of splits."""
    if str(path).startswith(HUB):  # no local file: hash the name
        return (hashlib.sha256(str(path).encode(errors="surrogateescape")).hexdigest(),)
    return tuple(content_hash(file) for file in corpus_files(path, source, target))


# Characters of both sides that are kept in memory. A larger corpus stays on disk, and its
# vocabulary is learned from a sample of about this size.
IN_MEMORY = 32_000_000
CHUNK = 10_000


@dataclass(frozen=True)
class StreamedCorpus:
    """Sentence pairs on disk, with the methods `pairs`, `sample` and `describe` of Corpus."""

    read: Callable[[], Iterator[Pair]]  # from the beginning, each time it is called
    origin: str
    hashes: tuple[str, ...]
    sample_size: int  # pairs that fit into memory

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield all (source, target) pairs, in order."""
        return ((pair.source, pair.target) for pair in self.read())

    def sample(self, seed: int) -> tuple[list[str], list[str]]:
        """Draw pairs uniformly (reservoir sampling: Vitter 1985, algorithm R).

        Returns:
            Sources and targets.
        """
        random = generator(seed, "sample")
        pairs = self.pairs()
        kept = list(islice(pairs, self.sample_size))
        seen = len(kept)
        while chunk := list(islice(pairs, CHUNK)):
            # The n-th pair replaces one of the k pairs in the sample with probability k / n.
            slots = random.integers(0, np.arange(seen, seen + len(chunk)) + 1)
            for index in np.flatnonzero(slots < len(kept)):
                kept[slots[index]] = chunk[index]
            seen += len(chunk)
        return [source for source, _ in kept], [target for _, target in kept]

    def describe(self, indices: Iterable[int]) -> str:
        """Return the file and line numbers of pairs; reads the files up to the last of them."""
        wanted = {int(index) for index in indices}
        pairs = enumerate(islice(self.read(), max(wanted) + 1))
        return name_lines(self.origin, [pair.line for index, pair in pairs if index in wanted])


TrainingCorpus = Corpus | StreamedCorpus


def read_bounded(
    read: Callable[[], Iterator[Pair]], origin: str, hashes: tuple[str, ...]
) -> TrainingCorpus:
    """Read a corpus into memory if it has at most IN_MEMORY characters; otherwise stream it."""
    pairs: list[Pair] = []
    size = 0
    for pair in read():
        pairs.append(pair)
        size += len(pair.source) + len(pair.target)
        if size > IN_MEMORY:
            return StreamedCorpus(read, origin, hashes, sample_size=len(pairs))
    return Corpus.of(pairs, origin, hashes)


@dataclass(frozen=True)
class Sentences:
    """Sentences and the file that they come from."""

    lines: Sequence[str]
    origin: str
    hashes: tuple[str, ...] = ()  # sha256 of each file, for the register of splits

    def __len__(self) -> int:
        return len(self.lines)

    def select(self, indices: np.ndarray) -> "Sentences":
        """Take the sentences at these indices."""
        return replace(self, lines=[self.lines[i] for i in indices])

    def describe(self, indices: Iterable[int]) -> str:
        """Return the file and line numbers of sentences, for messages."""
        return name_lines(self.origin, (int(index) + 1 for index in indices))


def read_sentences(path: Path, column: int | None = None) -> Sentences:
    """Read one sentence per line, or one column, counted from 1, of a tab-separated file.

    Raises:
        NotFoundError: no such file.
        DataError: the file is empty or not UTF-8, a line is empty or has too few columns.
    """
    lines, content_hash = read_lines(path)
    if column is not None:
        width = max(mode(line.count("\t") for line in lines) + 1, column)
        lines = [_column(path, number, line, column, width) for number, line in enumerate(lines, 1)]
    if empty := [number for number, line in enumerate(lines, 1) if not line.strip()]:
        more = f" (and {len(empty) - 1} more)" if len(empty) > 1 else ""
        raise DataError(
            f"{path}, line {empty[0]}{more}: the line is empty. Remove it, or fill it in."
        )
    return Sentences(lines, str(path), (content_hash,))


def _column(path: Path, number: int, line: str, column: int, width: int) -> str:
    cells = line.split("\t")
    if len(cells) < column:
        raise DataError(
            f"{path}, line {number}: there is no column {column}, only {len(cells)}. Columns are "
            "separated by tabs and counted from 1; set data.column."
        )
    if len(cells) != width:
        raise DataError(
            f"{path}, line {number}: {len(cells)} columns where {width} are expected. Columns are "
            "separated by tabs: a text has none in it."
        )
    return cells[column - 1]
