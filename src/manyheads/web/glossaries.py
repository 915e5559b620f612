"""Glossaries that clients keep on the server, in a database that its processes share."""

import csv
import io
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import uuid4

from manyheads.data.documents.glossary import Entry, Glossary
from manyheads.data.text.encoding import reject_surrogates
from manyheads.errors import NotFoundError, UsageError
from manyheads.strict_json import dumps, loads
from manyheads.web.problem_json import refusal

MOST = 100  # glossaries
_ROWS: dict[str, Callable[[str], list[list[str]]]] = {  # how entries are divided into fields
    "tsv": lambda entries: [line.split("\t") for line in entries.splitlines()],
    "csv": lambda entries: list(csv.reader(io.StringIO(entries))),
}


class KeptGlossary(NamedTuple):
    """Terms and their required translations: a row of the database."""

    number: str
    name: str
    source: str
    target: str
    created: str
    pairs: str  # JSON: a list of terms and their translations

    @property
    def terms(self) -> Glossary:
        """The terms."""
        return Glossary(Entry(*pair) for pair in loads(self.pairs))

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


class Glossaries:
    """All glossaries, by their numbers, in a file that other processes may read and write too."""

    def __init__(self, file: str) -> None:
        self._rows = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        columns = ", ".join(KeptGlossary._fields)
        self._rows.execute(f"CREATE TABLE IF NOT EXISTS glossaries ({columns}, UNIQUE (number))")

    def close(self) -> None:
        """Close the database."""
        self._rows.close()

    def __iter__(self) -> Iterator[KeptGlossary]:
        found = self._rows.execute("SELECT * FROM glossaries ORDER BY rowid").fetchall()
        return iter([KeptGlossary(*row) for row in found])

    def add(self, name: str, source: str, target: str, entries: str, form: str) -> KeptGlossary:
        """Keep terms, written as "tsv" or "csv".

        Raises:
            UsageError: another form, damaged CSV, or a line that has not two fields.
            DataError: two translations of one term.
            ProblemError: there are too many.
        """
        if form not in _ROWS:
            raise UsageError(f"entries_format is {form[:20]!r}. Allowed: {', '.join(_ROWS)}.")
        reject_surrogates([name, source, target, entries], "the glossary")
        try:
            rows = [row for row in _ROWS[form](entries) if any(map(str.strip, row))]
        except csv.Error as error:
            raise UsageError(f"entries cannot be read as {form}: {error}.") from None
        if not rows or any(len(row) < 2 for row in rows):
            raise UsageError("entries has a line without a term and its translation, or none.")
        pairs = dumps([[row[0].strip(), row[1].strip()] for row in rows])
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        made = KeptGlossary(str(uuid4()), name, source.lower(), target.lower(), now, pairs)
        _ = made.terms  # or it is refused
        kept = self._rows.execute(
            "INSERT INTO glossaries SELECT ?, ?, ?, ?, ?, ? "
            f"WHERE (SELECT count(*) FROM glossaries) < {MOST}",
            made,
        )
        if not kept.rowcount:
            raise refusal("glossaries", most=MOST)
        return made

    def find(self, number: str) -> KeptGlossary:
        """Find one, or raise NotFoundError."""
        known = number.encode("utf-8", "replace").decode()  # a lone surrogate is in no number
        rows = self._rows.execute("SELECT * FROM glossaries WHERE number = ?", (known,))
        if (row := rows.fetchone()) is None:
            raise NotFoundError(f"There is no glossary {number[:60]!r}.")
        return KeptGlossary(*row)

    def remove(self, number: str) -> None:
        """Forget one, or raise NotFoundError."""
        self._rows.execute("DELETE FROM glossaries WHERE number = ?", (self.find(number).number,))
