"""Strict readers of .tsv, .csv and .jsonl rows; each row comes with its first line number.

Used for sentence pairs and for image manifests. A row that breaks the format is reported, and None
is yielded in its place.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manyheads.data.text.lines import Problem, Report, lines, raw_lines, refuse
from manyheads.strict_json import loads


def tsv_rows(path: Path, report: Report = refuse) -> Iterator[tuple[int, list[str] | None]]:
    """Yield lines split at tabs; quotation marks are ordinary characters."""
    for number, text in lines(path, report):
        yield number, None if text is None else text.split("\t")


def csv_rows(path: Path, report: Report = refuse) -> Iterator[tuple[int, list[str] | None]]:
    """Yield records as RFC 4180 defines them, each with its first line number."""
    line = 0
    damaged = False  # a line of the record was reported

    def feed() -> Iterator[str]:
        nonlocal line, damaged
        for line, text in raw_lines(path, report):  # noqa: B007 - read by the enclosing function
            damaged = damaged or text is None
            yield text or ""

    records = csv.reader(feed(), strict=True)
    while True:
        begin, damaged = line + 1, False
        try:
            record = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            message = (
                f"the record that begins here is not valid CSV: {error}. Quote a field that "
                'contains a comma, a line break or a quote, and write a quote in it as "".'
            )
            report(Problem("invalid-record", begin, f"{path}, line {begin}", message))
        else:
            yield begin, None if damaged else record


def json_rows(path: Path, report: Report = refuse) -> Iterator[tuple[int, Any]]:
    """Yield one JSON value per line; empty lines are skipped."""
    for number, text in lines(path, report):
        if text is None or not text.strip():
            continue
        try:
            row = loads(text)
        except ValueError as error:
            message = f"not valid JSON ({error}). Write one object a line."
            report(Problem("invalid-record", number, f"{path}, line {number}", message, text))
        else:
            yield number, row
