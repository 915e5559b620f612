"""Glossaries that clients keep on the server, in memory."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from manyheads.data.documents.glossary import Entry, Glossary
from manyheads.data.text.encoding import reject_surrogates
from manyheads.errors import NotFoundError, UsageError
from manyheads.web.problems import ProblemError

MOST = 100  # glossaries


def _tsv(entries: str) -> list[list[str]]:
    return [line.split("\t") for line in entries.splitlines()]


def _csv(entries: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(entries)))


_ROWS = {"tsv": _tsv, "csv": _csv}  # how entries are divided into fields


@dataclass(frozen=True)
class KeptGlossary:
    """Terms and their required translations."""

    number: str
    name: str
    source: str
    target: str
    created: str
    terms: Glossary

    def facts(self) -> dict[str, Any]:
        """Describe it as DeepL does."""
        return {
            "glossary_id": self.number,
            "name": self.name,
            "ready": True,
            "source_lang": self.source,
            "target_lang": self.target,
            "creation_time": self.created,
            "entry_count": len(self.terms.entries),
        }

    def lines(self) -> str:
        """Write a line for each term: term, tab, translation."""
        found = self.terms.entries.values()
        return "\n".join(f"{each.source}\t{each.target}" for each in found)


class Glossaries:
    """All glossaries, by their numbers."""

    def __init__(self) -> None:
        self._kept: dict[str, KeptGlossary] = {}

    def __iter__(self) -> Iterator[KeptGlossary]:
        """Give each."""
        return iter(list(self._kept.values()))

    def add(self, name: str, source: str, target: str, entries: str, form: str) -> KeptGlossary:
        """Keep terms, written as "tsv" or "csv".

        Raises:
            UsageError: another form, damaged CSV, or a line that has not two fields.
            DataError: two translations of one term.
            ProblemError: there are too many.
        """
        if form not in _ROWS:
            raise UsageError(f"entries_format is {form[:20]!r}. Allowed: {', '.join(_ROWS)}.")
        if len(self._kept) >= MOST:
            raise ProblemError(
                429,
                "Too many glossaries",
                f"There are {MOST} glossaries.",
                remedy="Delete one, or send terms with the document.",
                retry_after=60,
            )
        reject_surrogates([name, source, target, entries], "the glossary")
        try:
            rows = [row for row in _ROWS[form](entries) if any(map(str.strip, row))]
        except csv.Error as error:
            raise UsageError(f"entries cannot be read as {form}: {error}.") from None
        if not rows or any(len(row) < 2 for row in rows):
            raise UsageError("entries has a line without a term and its translation, or none.")
        terms = Glossary(Entry(row[0].strip(), row[1].strip()) for row in rows)
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        made = KeptGlossary(str(uuid4()), name, source.lower(), target.lower(), now, terms)
        self._kept[made.number] = made
        return made

    def find(self, number: str) -> KeptGlossary:
        """Find one.

        Raises:
            NotFoundError: there is none.
        """
        if number not in self._kept:
            raise NotFoundError(f"There is no glossary {number[:60]!r}.")
        return self._kept[number]

    def remove(self, number: str) -> None:
        """Forget one.

        Raises:
            NotFoundError: there is none.
        """
        del self._kept[self.find(number).number]
