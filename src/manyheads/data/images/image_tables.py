"""Labelled images in tables: .parquet, .csv, .tsv, .jsonl, or a data set on the hub."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from manyheads.data.images.image_file import read_cell
from manyheads.data.images.image_set import ImageSet, labelled
from manyheads.data.regular_files import size_of
from manyheads.data.text.lines import refuse
from manyheads.data.text.rows import open_hub_images, require_columns, table_rows
from manyheads.errors import DataError
from manyheads.files import expand_user

KEYS = "Name them with data.image and data.label"


def read_tables(
    paths: Sequence[Path], image: str, label: str | None, separator: str | None = None
) -> ImageSet:
    """Read tables with a column of images and a column of class names.

    A .parquet has images as bytes, paths, or Hugging Face's struct of both; other tables have
    paths, relative to their own folder. Without `label` no labels are read; `separator` is as in
    `number_labels`.

    Raises:
        MissingExtraError: pyarrow is not installed.
        DataError: a file cannot be read, or has no such columns; the message names the line.
    """
    wanted = [image] if label is None else [image, label]
    cells: list[tuple[object, Path]] = []  # each with the folder of its file
    values: list[object] = []
    names: list[str] = []
    files: list[Path] = []
    hashes: list[str] = []
    for path in paths:
        sizes: list[int] = []
        for _, place, row in table_rows(path, wanted, KEYS, refuse):
            if path.suffix == ".parquet":
                files.append(path)
            else:
                require_columns(wanted, row, place, KEYS)
                if not isinstance(row[image], str) or not row[image]:
                    raise DataError(f"{place}: {image} is {row[image]!r}, not a path.")
                files.append(path.parent / expand_user(row[image]))
                sizes.append(size_of(files[-1]))
                place = str(files[-1])
            cells.append((row[image], path.parent))
            values.append(None if label is None else row[label])
            names.append(place)
        digest = hashlib.sha256(path.read_bytes())
        # As for folders, hash sizes instead of the content.
        digest.update("\n".join(map(str, sizes)).encode())
        hashes.append(digest.hexdigest())
    origin = ", ".join(map(str, paths))
    if not cells:
        raise DataError(f"{origin}: no rows.")
    return labelled(
        names,
        None if label is None else values,
        separator,
        read=lambda index: read_cell(*cells[index]),
        origin=origin,
        files=files,
        hashes=tuple(hashes),
    )


def read_hub(name: str, image: str, label: str | None, separator: str | None = None) -> ImageSet:
    """Read a data set that `open_hub` opens, with its errors.

    Raises:
        DataError: the data set has no such columns, or labels that are none of its classes.
    """
    rows, digest = open_hub_images(name, image, [] if label is None else [label], KEYS)
    values = None if label is None else list(rows[label])
    known = getattr(rows.features.get(label), "names", None)  # numbers that stand for names
    if values is not None and known:
        unknown = [row for row, value in enumerate(values, 1) if value not in range(len(known))]
        if unknown:
            raise DataError(
                f"{name}, row {unknown[0]}: the label is {values[unknown[0] - 1]!r}, "
                f"not one of its {len(known)} classes ({len(unknown):,} such rows). Remove these "
                "rows."
            )
        values = [known[value] for value in values]
    return labelled(
        [f"{name}, row {row}" for row in range(1, len(rows) + 1)],
        values,
        separator,
        read=lambda index: read_cell(rows[index][image], Path()),
        origin=name,
        hashes=(digest,),
    )
