"""Bins of sentences by length, to report quality by sentence length."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from manyheads.data.text.languages import base

WORDS = (5, 10, 15, 20, 30, 40, 50)  # the last length of each bin; the final bin has no limit
CHARACTERS = (10, 20, 30, 40, 60, 80, 100)
UNSPACED = ("ja", "km", "lo", "my", "th", "zh")  # languages written without spaces between words


class Bin(NamedTuple):
    """Sentences of similar length."""

    first: int
    last: int | None  # None: no limit
    members: list[int]  # indices of the sentences


def length_bins(sources: Sequence[str], language: str) -> tuple[str, list[Bin]]:
    """Sort sentences into fixed bins, so that corpora can be compared.

    Returns:
        The unit: "words", or "characters" for languages without spaces; and the non-empty bins.
    """
    unit, limits = ("characters", CHARACTERS) if base(language) in UNSPACED else ("words", WORDS)
    bins = [Bin(n + 1, last, []) for n, last in zip((0, *limits), (*limits, None), strict=True)]
    for index, text in enumerate(sources):
        length = len(text) if unit == "characters" else len(text.split())
        if length:
            bins[bisect_left(limits, length)].members.append(index)
    return unit, [each for each in bins if each.members]
