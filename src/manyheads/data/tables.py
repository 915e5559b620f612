"""Rows of tables in text files, read strictly, each with the line on which it begins.

One reader a form, for sentence pairs and for lists of pictures alike. A row that is not what the
form says is reported, and None stands for it.
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manyheads.data.lines import Problem, Report, lines, raw_lines, refuse


def tsv_rows(path: Path, report: Report = refuse) -> Iterator[tuple[int, list[str] | None]]:
    """Yield lines cut at tabs; quotation marks mean nothing."""
    for number, text in lines(path, report):
        yield number, None if text is None else text.split("\t")


def csv_rows(path: Path, report: Report = refuse) -> Iterator[tuple[int, list[str] | None]]:
    """Yield records as RFC 4180 defines them, with the line on which each begins."""
    line = 0

    def feed() -> Iterator[str]:
        nonlocal line
        for line, text in raw_lines(path, report):  # noqa: B007 - read by the enclosing function
            if text is not None:
                yield text

    records = csv.reader(feed(), strict=True)
    while True:
        begin = line + 1
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
            yield begin, record


def json_rows(path: Path, report: Report = refuse) -> Iterator[tuple[int, Any]]:
    """Yield one value of JSON a line; empty lines are none."""
    for number, text in lines(path, report):
        if text is None or not text.strip():
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as error:
            message = f"not valid JSON ({error}). Write one object a line."
            report(Problem("invalid-record", number, f"{path}, line {number}", message, text))
        else:
            yield number, row
