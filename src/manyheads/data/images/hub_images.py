"""Labelled images from the Hugging Face hub."""

import hashlib
from pathlib import Path

from manyheads.data.images.image_file import read_cell
from manyheads.data.images.image_set import ImageSet, number_labels
from manyheads.data.text.formats import open_hub
from manyheads.errors import DataError


def read_hub(name: str, image: str, label: str | None, separator: str | None = None) -> ImageSet:
    """Read a data set that `open_hub` opens, with its errors.

    Raises:
        DataError: the data set has no such columns, or labels that are none of its classes.
    """
    rows = open_hub(name)
    from datasets import Image

    missing = {name for name in (image, label) if name} - set(rows.column_names)
    if missing:
        raise DataError(
            f"{name} has no column {' or '.join(sorted(missing))}; it has "
            f"{', '.join(rows.column_names)}. Name them with data.image and data.label."
        )
    rows = rows.cast_column(image, Image(decode=False))
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
    names = [f"{name}, row {row}" for row in range(1, len(rows) + 1)]
    labels, classes = number_labels(values, names, separator)
    fingerprint = getattr(rows, "_fingerprint", name)
    return ImageSet(
        labels=labels,
        classes=classes,
        names=names,
        read=lambda index: read_cell(rows[index][image], Path()),
        origin=name,
        hashes=(hashlib.sha256(str(fingerprint).encode()).hexdigest(),),
    )
