"""Clean parallel text: what a check found is mended where that is safe, else the pair is dropped.

A second pass over the same pairs, after the check has seen the corpus as a whole. Nothing is done
without an entry in the log.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from manyheads.data.checks import Checker
from manyheads.data.damage import KINDS
from manyheads.data.faults import CONTROL, INVISIBLE, unbroken, unescaped, unusual_spaces
from manyheads.data.formats import Pair
from manyheads.data.lines import Problem


class Entry(NamedTuple):
    """A line of the log: what was done to which pair, and why."""

    line: int
    action: Literal["dropped", "changed"]
    reason: str
    text: str
    becomes: str = ""


_SEPARATING = re.compile("[\x0b\x0c\x1c-\x1f\x85]")  # control characters that part words


def _mends(language: str | None) -> list[Callable[[str], str]]:
    """Return what mends a text, in order: what an entity stood for is looked at by the rest."""
    spaces = unusual_spaces(language)
    return [
        lambda text: unbroken(text) or text,
        unescaped,
        lambda text: text.replace("\ufeff", ""),
        lambda text: INVISIBLE.sub("", text),
        lambda text: re.sub(r" *[\r\n]+ *", " ", text),
        lambda text: CONTROL.sub("", _SEPARATING.sub(" ", text)),
        lambda text: spaces.sub(" ", text),
        lambda text: re.sub("  +", " ", text).strip(" "),
        lambda text: unicodedata.normalize("NFC", text),
    ]


class Cleaner:
    """Takes the pairs of a checked corpus again, in the same order; returns what is left of them.

    Examples:
        >>> pairs = [Pair(1, "one", "eins "), Pair(2, "one", "eins")]
        >>> checker = Checker("en", "de")
        >>> for pair in pairs:
        ...     checker.add(pair)
        >>> cleaner = Cleaner(checker, "en", "de")
        >>> [cleaner(pair) for pair in pairs]
        [Pair(line=1, source='one', target='eins'), None]
        >>> [(entry.line, entry.action, entry.reason) for entry in cleaner.log]
        [(1, 'changed', 'spacing'), (2, 'dropped', 'duplicate-pair')]
    """

    def __init__(self, checker: Checker, source: str | None, target: str | None) -> None:
        self.log: list[Entry] = []  # taken by the caller whenever it likes
        self._checker = checker
        self._mends = _mends(source), _mends(target)
        self._unlike: dict[str, np.ndarray] = {}
        for kind, indices in checker.indices().items():
            if kind != "duplicate-pair":  # decided when it is mended: more may be equal then
                self._unlike[kind] = np.zeros(len(checker), dtype=bool)
                self._unlike[kind][indices] = True
        self._seen: set[int] = set()
        self._count = 0

    def report(self, problem: Problem) -> None:
        """Log what a reader could not accept: there is no pair to keep."""
        if KINDS[problem.kind].fix == "drop":
            entry = Entry(problem.line, "dropped", problem.kind, problem.text)
            if not (self.log and self.log[-1][:3] == entry[:3]):  # both sides of it are empty
                self.log.append(entry)

    def __call__(self, pair: Pair) -> Pair | None:
        """Return the pair, mended if need be; None if it is to be dropped."""
        index, self._count = self._count, self._count + 1
        first = index == 0
        found = self._checker.kinds(pair, first=first)
        mended, mendable = pair, _with_fix(found, "change")
        if mendable:
            mended = self._mend(pair, found)
            found = self._checker.kinds(mended, first=first)
        why = [kind for kind, flags in self._unlike.items() if flags[index]]
        why += _with_fix(found, "drop")
        if not (mended.source.strip() and mended.target.strip()):
            why.append("empty-side")
        if not why:
            key = hash((mended.source, mended.target))
            if key in self._seen:
                why.append("duplicate-pair")
            self._seen.add(key)
        text = f"{pair.source}\t{pair.target}"
        if why:
            self.log.append(Entry(pair.line, "dropped", ", ".join(why), text))
            return None
        if mended != pair:
            becomes = f"{mended.source}\t{mended.target}"
            self.log.append(Entry(pair.line, "changed", ", ".join(mendable), text, becomes))
        return mended

    def _mend(self, pair: Pair, found: dict[str, str]) -> Pair:
        for _ in range(3):  # "&amp;amp;" takes two rounds
            _, source, target = pair
            if "swapped-sides" in found:
                source, target = target, source
            for mend in self._mends[0]:
                source = mend(source)
            for mend in self._mends[1]:
                target = mend(target)
            pair = Pair(pair.line, source, target)
            found = self._checker.examine(pair)
            if not _with_fix(found, "change"):
                break
        return pair


def _with_fix(found: dict[str, str], fix: str) -> list[str]:
    return [kind for kind in found if KINDS[kind].fix == fix]
