"""Keep what is measured on out of training: pairs that share a line with it, and their likes.

Two lines are the same if they differ only in case, punctuation and spaces. Lines of fewer than
three words ("Thank you.") occur everywhere by chance and exclude nothing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from manyheads.data.text.formats import Pair, corpus_files, is_one_file, read_pairs
from manyheads.data.text.lines import ending, lines
from manyheads.errors import DataError
from manyheads.streams import generator

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

    def filter(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the pairs of which no side is held out; count the others anew."""
        self.left_out = 0
        for pair in pairs:
            if not self.held_out.isdisjoint(map(normalised, (pair.source, pair.target))):
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


def near_key(text: str) -> str:
    """Return what near-duplicates share: letters and digits, without case, marks and spaces.

    Examples:
        >>> near_key("It's  ME!") == near_key("its me")
        True
    """
    return normalised(text) or text


def hold_out(sources: Sequence[str], count: int, seed: int) -> tuple[list[int], list[int]]:
    """Split indices into the rest and at least `count` held out, both in order.

    A group of near-duplicate sources is on one side, so no held-out source was trained on.

    Raises:
        DataError: too few groups, so nothing would be left on one side.
    """
    keys = list(map(near_key, sources))
    sizes = Counter(keys)
    groups = list(sizes)
    order = [groups[index] for index in generator(seed, "hold-out").permutation(len(groups))]
    before = accumulate((sizes[key] for key in order), initial=0)
    held = {key for key, taken in zip(order, before, strict=False) if taken < count}
    if sum(sizes[key] for key in held) < count or len(held) == len(groups):
        raise DataError(
            f"{count:,} pairs cannot be held out of {len(sources):,}, which have {len(groups):,} "
            "different sources: hold out fewer."
        )
    parts: tuple[list[int], list[int]] = ([], [])
    for index, key in enumerate(keys):
        parts[key in held].append(index)
    return parts
