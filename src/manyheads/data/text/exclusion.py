"""Keep what is measured on out of training: pairs that share a line with held-out text.

Two lines are the same if they differ only in case, punctuation and spaces. Lines of fewer than
three words ("Thank you.") occur everywhere by chance and exclude nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from manyheads.data.text.formats import Pair, corpus_files, is_one_file, read_pairs
from manyheads.data.text.lines import ending, lines

WORDS = 3  # a line with fewer excludes nothing


def normalised(text: str) -> str:
    """Return the letters and digits of a text in lower case, without anything between them."""
    return "".join(filter(str.isalnum, text.casefold()))


@dataclass
class Exclusion:
    """Lines that no side of a training pair may equal; counts the pairs left out."""

    held_out: frozenset[str]
    left_out: int = field(default=0, init=False)

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Exclusion":
        """Hold out the texts of three words and more."""
        return cls(frozenset(normalised(text) for text in texts if len(text.split()) >= WORDS))

    def excludes(self, *sides: str) -> bool:
        """Return whether one of these texts equals a held-out one."""
        return any(normalised(side) in self.held_out for side in sides)

    def filter(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the pairs of which no side is held out; count the others anew."""
        self.left_out = 0
        for pair in pairs:
            if self.excludes(pair.source, pair.target):
                self.left_out += 1
            else:
                yield pair


def held_out_texts(path: str | Path, source: str, target: str) -> Iterator[str]:
    """Yield every text of a file or corpus: of a .tsv file all cells, however many a line has.

    Raises:
        NotFoundError: a file is missing.
        DataError: a file breaks its format.
    """
    if is_one_file(path) and ending(path) != ".tsv":
        for pair in read_pairs(path, source, target):
            yield from (pair.source, pair.target)
        return
    for file in corpus_files(path, source, target):
        for _, text in lines(file):
            yield from (text or "").split("\t")
