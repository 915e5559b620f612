"""Glossaries: terms with required translations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from manyheads.data.documents.placeholders import Item, is_whole
from manyheads.data.text.lines import lines
from manyheads.errors import DataError

_BEGINNING = 3  # characters by which terms are looked up


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
        # Terms by their letters in lower case; where several differ in case, capitals first.
        self._terms: dict[str, list[str]] = {}
        self._lengths: dict[str, set[int]] = {}  # of the terms that begin with these letters
        for term in sorted(self.entries, key=lambda term: term == term.lower()):
            key = _lower(" ".join(term.split()))
            self._terms.setdefault(key, []).append(term)
            self._lengths.setdefault(key[:_BEGINNING], set()).add(len(key))

    @classmethod
    def read(cls, path: Path) -> "Glossary":
        """Read lines of term, tab (or else semicolon), translation; empty lines are skipped.

        Raises:
            NotFoundError: no such file.
            DataError: not UTF-8, a line without tab or with an empty side, or two translations.
        """
        entries = []
        for number, line in lines(path):
            if line is None or not line.strip():
                continue
            sides = line.split("\t" if "\t" in line else ";")
            source, *rest = (" ".join(side.split()) for side in sides)
            if len(rest) != 1 or not source or not rest[0]:
                raise DataError(
                    f"{path}, line {number}: {line!r} is not a term, a tab and its translation. "
                    "Write two columns, with a tab or a semicolon between them."
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
        read = _Reading.of(text)
        for place in range(len(read.text)):
            matches = self._at(text, read, place)
            (term, end), *shorter = next(matches, ("", 0)), *matches
            if not term:
                continue
            begin = read.places[place]
            if items and begin < items[-1].end:
                overlaps.add((last, term))
                continue
            overlaps |= {(term, other) for other, _ in shorter if len(other) < len(term)}
            last = term
            target = self.entries[term].target
            capital = text[begin].isupper() and term[0].islower()
            whole = target[0].upper() + target[1:] if capital else target
            items.append(Item("term", begin, end, target, whole))
        return items, overlaps

    def _at(self, text: str, read: "_Reading", place: int) -> Iterator[tuple[str, int]]:
        """Find the terms that begin at a place, the longest first, and their ends in the text."""
        lengths = {
            length
            for letters in range(1, _BEGINNING + 1)
            for length in self._lengths.get(read.text[place : place + letters], ())
            if place + length <= len(read.text)
        }
        for length in sorted(lengths, reverse=True):
            for term in self._terms.get(read.text[place : place + length], ()):
                begin, end = read.places[place], read.places[place + length - 1] + 1
                if _same_case(term, text[begin:end]) and is_whole(text, begin, end):
                    yield term, end


class _Reading(NamedTuple):
    """A text as terms are compared with it: small letters, one space for any white space."""

    text: str
    places: list[int]  # of its characters in the text

    @classmethod
    def of(cls, text: str) -> "_Reading":
        spaces = [False, *map(str.isspace, text)]  # of the character before
        places = [n for n, sign in enumerate(text) if not (sign.isspace() and spaces[n])]
        read = (" " if text[place].isspace() else _lower(text[place]) for place in places)
        return cls("".join(read), places)


def with_terms(items: Sequence[Item], terms: Sequence[Item]) -> list[Item]:
    """Merge glossary terms into the other items.

    A term replaces overlapping numbers, file names and emoji; code, tags, URLs and placeholders
    replace overlapping terms.
    """
    weak = ("number", "file", "emoji")
    strong = [item for item in items if item.kind not in weak]
    kept = [term for term in terms if not any(_overlap(term, item) for item in strong)]
    numbers = (item for item in items if item.kind in weak)
    others = [item for item in numbers if not any(_overlap(term, item) for term in kept)]
    return sorted([*strong, *others, *kept], key=lambda item: item.begin)


def _overlap(first: Item, second: Item) -> bool:
    return first.begin < second.end and second.begin < first.end


def _lower(text: str) -> str:
    """Return a text in small letters, with as many characters."""
    return "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in text)


def _same_case(term: str, text: str) -> bool:
    """Return whether a term with capitals is written as it is, or with its words capitalised."""
    return term == term.lower() or all(
        found in (word, word[:1].upper() + word[1:])
        for word, found in zip(term.split(), text.split(), strict=True)
    )
