"""Pictures listed in a table: a .csv, .tsv or .jsonl file of paths and labels."""

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from manyheads.data.images import ImageSet, number_labels, open_content
from manyheads.errors import DataError, nearest

LISTINGS = (".csv", ".tsv", ".jsonl")


def read_listing(path: Path, image: str, label: str, separator: str | None = None) -> ImageSet:
    """Read a table with a column of paths, relative to its own folder, and a column of labels.

    Args:
        path: a .csv or .tsv with a header, or a .jsonl with an object a line.
        image: the column, or key, of the paths.
        label: the column, or key, of the labels.
        separator: between several labels of a picture; None: each has one.

    Raises:
        DataError: a line is not as it should be; the message names it.
    """
    places: list[Path] = []
    values: list[object] = []
    names: list[str] = []
    for line, row in _rows(path):
        missing = [name for name in (image, label) if name not in row]
        if missing:
            raise DataError(
                f"{path}, line {line} has no {' or '.join(missing)}{nearest(missing[0], row)}"
                f"It has {', '.join(row)}. Name them with data.image and data.label."
            )
        if not isinstance(row[image], str) or not row[image]:
            raise DataError(f"{path}, line {line}: {image} is {row[image]!r}, not a path.")
        places.append(path.parent / Path(row[image]).expanduser())
        values.append(row[label])
        names.append(str(places[-1]))
    if not places:
        raise DataError(f"{path}: no rows.")
    labels, classes = number_labels(values, names, separator)
    # As for folders, names and sizes stand for the content.
    sizes = [place.stat().st_size if place.exists() else -1 for place in places]
    digest = hashlib.sha256(path.read_bytes())
    digest.update("\n".join(map(str, sizes)).encode())
    return ImageSet(
        labels=labels,
        classes=classes,
        names=names,
        read=lambda index: open_content(places[index].read_bytes()),
        origin=str(path),
        hashes=(digest.hexdigest(),),
    )


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rows with their line numbers."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start + 1} is not valid UTF-8.") from None
    if path.suffix == ".jsonl":
        yield from _objects(path, text)
        return
    reader = csv.reader(
        StringIO(text, newline=""), delimiter="\t" if path.suffix == ".tsv" else ","
    )
    header: list[str] | None = None
    for cells in _parsed(reader, path):
        if not cells:
            continue
        if header is None:
            header = cells
        elif len(cells) != len(header):
            raise DataError(
                f"{path}, line {reader.line_num} has {len(cells)} cells, the header has "
                f"{len(header)}: {', '.join(header)}. Put quotes around cells with separators."
            )
        else:
            yield reader.line_num, dict(zip(header, cells, strict=True))


def _parsed(reader: Any, path: Path) -> Iterator[list[str]]:
    """Yield the rows of a csv reader, and say where it gives up."""
    try:
        yield from reader
    except csv.Error as error:
        raise DataError(
            f"{path}, line {reader.line_num}: {error}. Look for a quotation mark without a second."
        ) from None


def _objects(path: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}, line {number} is not JSON: {error}.") from None
        if not isinstance(row, dict):
            raise DataError(f"{path}, line {number} is not an object with keys and values.")
        yield number, row
