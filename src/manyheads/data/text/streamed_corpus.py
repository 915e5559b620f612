"""Corpora larger than memory: the files are read again whenever their text is needed."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from manyheads.data.text.corpus import Corpus, name_lines
from manyheads.data.text.formats import Pair
from manyheads.streams import generator

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
        lines = [
            pair.line
            for index, pair in enumerate(islice(self.read(), max(wanted) + 1))
            if index in wanted
        ]
        return name_lines(self.origin, lines)


def read_bounded(
    read: Callable[[], Iterator[Pair]], origin: str, hashes: tuple[str, ...]
) -> Corpus | StreamedCorpus:
    """Read a corpus into memory if it has at most IN_MEMORY characters; otherwise stream it."""
    pairs: list[Pair] = []
    size = 0
    for pair in read():
        pairs.append(pair)
        size += len(pair.source) + len(pair.target)
        if size > IN_MEMORY:
            return StreamedCorpus(read, origin, hashes, sample_size=len(pairs))
    return Corpus.of(pairs, origin, hashes)
