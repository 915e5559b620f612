"""Glossaries: terms with required translations."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from manyheads.data.documents.placeholders import Item, as_word
from manyheads.data.text.lines import lines
from manyheads.errors import DataError


@dataclass(frozen=True, slots=True)
class Entry:
    """A term and its translation."""

    source: str
    target: str


class Glossary:
    """Terms, matched as whole words; where several match, the first and longest is used.

    A term in lower-case letters also matches with capitals; a term with capitals, such as US,
    matches only as written. Terms are not inflected: other forms of a word need their own entries.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        """Check the entries and sort them by length.

        Raises:
            DataError: an empty side, or two translations of one term.
        """
        self.entries: dict[str, Entry] = {}
        for entry in entries:
            if not entry.source.strip() or not entry.target.strip():
                raise DataError(f"Glossary {entry}: write both the term and its translation.")
            known = self.entries.setdefault(entry.source, entry)
            if known.target != entry.target:
                raise DataError(
                    f"The glossary translates {entry.source!r} as {known.target!r} and as "
                    f"{entry.target!r}: keep one of them."
                )
        # At each position, try longer terms first, and among equals those with capitals.
        longest = sorted(self.entries, key=lambda term: (-len(term), term == term.lower()))
        self._patterns = {term: re.compile(_pattern(term)) for term in longest}
        self._firsts = {_first(term) for term in longest}
        self._starting: dict[str, list[str]] = {}  # cache: candidates by first character

    @classmethod
    def read(cls, path: Path) -> "Glossary":
        """Read lines of term, tab, translation; empty lines are skipped.

        Raises:
            NotFoundError: no such file.
            DataError: not UTF-8, a line without tab or with an empty side, or two translations.
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
            The terms as items, and pairs of overlapping entries of which only the first is used.
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
        """Find the longest term that begins at a position; return it and its end."""
        for term in self._candidates(text[begin]):
            if match := self._patterns[term].match(text, begin):
                return term, match.end()
        return None, begin

    def _candidates(self, character: str) -> list[str]:
        """Return the terms that may begin with a character; trying all would be slow."""
        if character not in self._starting:
            firsts = {first for first in self._firsts if re.match(_pattern(first), character)}
            self._starting[character] = [term for term in self._patterns if _first(term) in firsts]
        return self._starting[character]

    def _beginning(self, chosen: str, text: str) -> list[str]:
        """Return the shorter terms that are a prefix of the text."""
        shorter = (term for term in self._candidates(text[0]) if len(term) < len(chosen))
        return [term for term in shorter if self._patterns[term].match(text)]


def with_terms(items: Sequence[Item], terms: Sequence[Item]) -> list[Item]:
    """Merge glossary terms into the other items.

    A term replaces overlapping numbers, file names and emoji; code, tags, URLs and placeholders
    replace overlapping terms.
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
    """Return a pattern of a term: any white space for a space, any case if it is lower-case."""
    pattern = r"\s+".join(as_word(word).pattern for word in term.split())
    return f"(?i:{pattern})" if term == term.lower() else pattern
