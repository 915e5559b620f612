"""Image manifests: .csv, .tsv or .jsonl files of image paths and labels."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from manyheads.data.images.image_file import read_content
from manyheads.data.images.image_set import ImageSet, number_labels
from manyheads.data.regular_files import size_of
from manyheads.data.text.lines import Problem, Report, refuse
from manyheads.data.text.tables import csv_rows, json_rows, tsv_rows
from manyheads.errors import DataError, nearest
from manyheads.files import expand_user

LISTINGS = (".csv", ".tsv", ".jsonl")


def read_listing(
    path: Path, image: str, label: str | None, separator: str | None = None
) -> ImageSet:
    """Read a table with a column of paths, relative to its own folder, and a column of labels.

    A .csv or .tsv has a header, a .jsonl has one object per line. Without `label` no labels are
    read; `separator` is as in `number_labels`.

    Raises:
        DataError: a line is invalid; the message names it.
    """
    places: list[Path] = []
    values: list[object] = []
    names: list[str] = []
    for line, row in listing_rows(path):
        missing = [name for name in (image, label) if name is not None and name not in row]
        if missing:
            raise DataError(
                f"{path}, line {line} has no {' or '.join(missing)}{nearest(missing[0], row)}"
                f"It has {', '.join(row)}. Name them with data.image and data.label."
            )
        if not isinstance(row[image], str) or not row[image]:
            raise DataError(f"{path}, line {line}: {image} is {row[image]!r}, not a path.")
        places.append(path.parent / expand_user(row[image]))
        values.append(None if label is None else row[label])
        names.append(str(places[-1]))
    if not places:
        raise DataError(f"{path}: no rows.")
    labels, classes = number_labels(None if label is None else values, names, separator)
    # As for folders, hash names and sizes instead of the content.
    sizes = [size_of(place) for place in places]
    digest = hashlib.sha256(path.read_bytes())
    digest.update("\n".join(map(str, sizes)).encode())
    return ImageSet(
        labels=labels,
        classes=classes,
        names=names,
        read=lambda index: read_content(places[index]),
        origin=str(path),
        files=places,
        hashes=(digest.hexdigest(),),
    )


def listing_rows(path: Path, report: Report = refuse) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield line numbers and rows, as mappings from column to cell."""
    if path.suffix == ".jsonl":
        for line, row in json_rows(path, report):
            if isinstance(row, dict):
                yield line, row
                continue
            place = f"{path}, line {line} is not an object"
            report(Problem("invalid-record", line, place, "expected keys and values."))
        return
    read = tsv_rows if path.suffix == ".tsv" else csv_rows
    filled = ((line, cells) for line, cells in read(path, report) if cells and cells != [""])
    first, header = next(filled, (0, []))
    if len(set(header)) < len(header):
        raise DataError(f"{path}, line {first}: two columns have the same name: {header}.")
    for line, cells in filled:
        if len(cells) == len(header):
            yield line, dict(zip(header, cells, strict=True))
            continue
        place = f"{path}, line {line} has {len(cells)} cells, the header has {len(header)}"
        message = f"{', '.join(header)}. In a .csv, quote the cells that contain separators."
        report(Problem("invalid-record", line, place, message))
