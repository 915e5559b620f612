"""Glossaries: terms and the translations that they must have."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from manyheads.data.lines import lines
from manyheads.data.placeholders import Item, as_word
from manyheads.errors import DataError


@dataclass(frozen=True, slots=True)
class Entry:
    """A term and its translation."""

    source: str
    target: str


class Glossary:
    """Entries, looked up as whole words; where several fit, the first and longest counts.

    A term in lower-case letters also stands for itself with capitals; one with capitals, such as
    US, stands only for itself. Terms and translations are taken as they are: other forms of a word
    need entries of their own.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Sort out the entries.

        Raises:
            DataError: an empty side, or two translations of one term.
        """
        self.entries: dict[str, Entry] = {}
        for entry in entries:
            if not entry.source.strip() or not entry.target.strip():
                raise DataError(f"A glossary cannot have {entry}: write both term and translation.")
            known = self.entries.setdefault(entry.source, entry)
            if known.target != entry.target:
                raise DataError(
                    f"The glossary translates {entry.source!r} as {known.target!r} and as "
                    f"{entry.target!r}: keep one of them."
                )
        # At every place the longest entry that begins there, and the one with capitals first.
        longest = sorted(self.entries, key=lambda term: (-len(term), term == term.lower()))
        self._patterns = {term: re.compile(_pattern(term)) for term in longest}
        self._firsts = {_first(term) for term in longest}
        self._starting: dict[str, list[str]] = {}  # by characters met in texts

    @classmethod
    def read(cls, path: Path) -> "Glossary":
        """Read lines of term, tab, translation; empty lines are skipped.

        Raises:
            NotFoundError: no such file.
            DataError: not UTF-8, a line without tab or with an empty side, or a contradiction.
        """
        entries = []
        for number, line in lines(path):
            if line is None or not line.strip():
                continue
            source, *rest = (" ".join(side.split()) for side in line.split("\t"))
            if len(rest) != 1 or not source or not rest[0]:
                raise DataError(
                    f"{path}, line {number}: {line!r} is not a term, a tab and its translation."
                )
            entries.append(Entry(source, rest[0]))
        return cls(entries)

    def find(self, text: str) -> tuple[list[Item], set[tuple[str, str]]]:
        """Find terms in a text, from left to right.

        Returns:
            The terms as items to put their translations for, and pairs of entries of which only
            the first counted, because they overlap.
        """
        items: list[Item] = []
        overlaps: set[tuple[str, str]] = set()
        last = ""
        for begin in range(len(text)):
            term, end = self._at(text, begin)
            if term is None:
                continue
            entry = self.entries[term]
            if items and begin < items[-1].end:
                overlaps.add((last, entry.source))
                continue
            begun = self._beginning(entry.source, text[begin:end])
            overlaps |= {(entry.source, other) for other in begun}
            last = entry.source
            capital = text[begin].isupper() and entry.source[0].islower()
            whole = entry.target[0].upper() + entry.target[1:] if capital else entry.target
            items.append(Item("term", begin, end, entry.target, whole))
        return items, overlaps

    def _at(self, text: str, begin: int) -> tuple[str | None, int]:
        """Find the first and longest term that begins at a place, and where it ends."""
        for term in self._candidates(text[begin]):
            if match := self._patterns[term].match(text, begin):
                return term, match.end()
        return None, begin

    def _candidates(self, character: str) -> list[str]:
        """Name the terms that may begin with a character: trying all of them would take long."""
        if character not in self._starting:
            firsts = {first for first in self._firsts if re.match(_pattern(first), character)}
            self._starting[character] = [term for term in self._patterns if _first(term) in firsts]
        return self._starting[character]

    def _beginning(self, chosen: str, text: str) -> list[str]:
        """Name the shorter entries that a term begins with."""
        shorter = (term for term in self._candidates(text[0]) if len(term) < len(chosen))
        return [term for term in shorter if self._patterns[term].match(text)]


def with_terms(items: Sequence[Item], terms: Sequence[Item]) -> list[Item]:
    """Merge terms into what else must survive.

    A term goes before numbers and file names in it; code, tags, URLs and placeholders go before
    terms in them.
    """
    weak = ("number", "file", "emoji")
    strong = [item for item in items if item.kind not in weak]
    kept = [term for term in terms if not any(_overlap(term, item) for item in strong)]
    others = [
        item
        for item in items
        if item.kind not in weak or not any(_overlap(term, item) for term in kept)
    ]
    return sorted([*others, *kept], key=lambda item: item.begin)


def _overlap(first: Item, second: Item) -> bool:
    return first.begin < second.end and second.begin < first.end


def _first(term: str) -> str:
    return term.lstrip()[0]


def _pattern(term: str) -> str:
    """A term as a pattern: any space for a space, any case for lower-case letters."""
    pattern = r"\s+".join(as_word(word).pattern for word in term.split())
    return f"(?i:{pattern})" if term == term.lower() else pattern
