"""Labelled pictures by their name on the Hugging Face hub."""

import hashlib
from pathlib import Path
from typing import Any

from manyheads.data.formats import HUB
from manyheads.data.images import ImageSet, Picture, number_labels, open_content
from manyheads.errors import DataError, MissingExtraError, UsageError


def read_hub(name: str, image: str, label: str, separator: str | None = None) -> ImageSet:
    """Read hub:owner/name, hub:owner/name:split or hub:owner/name:configuration:split.

    Raises:
        MissingExtraError: the package that fetches data sets is not installed.
        UsageError: not a name of this form.
        DataError: it cannot be fetched, or has no such columns.
    """
    try:
        from datasets import Image, load_dataset
    except ImportError:
        raise MissingExtraError(package="datasets", extra="hub") from None
    repository, *rest = name.removeprefix(HUB).split(":")
    if len(rest) > 2 or not repository:
        raise UsageError(
            f"{name!r} is not the name of a data set: hub:owner/name, hub:owner/name:split, or "
            "hub:owner/name:configuration:split."
        )
    split = rest[-1] if rest else "train"
    configuration = rest[0] if len(rest) == 2 else None
    try:
        rows = load_dataset(repository, configuration, split=split)
    except (OSError, ValueError) as error:  # not there, no such split, no network
        raise DataError(f"{name} cannot be read: {error}.") from error
    missing = {image, label} - set(rows.column_names)
    if missing:
        raise DataError(
            f"{name} has no column {' or '.join(sorted(missing))}; it has "
            f"{', '.join(rows.column_names)}. Name them with data.image and data.label."
        )
    rows = rows.cast_column(image, Image(decode=False))
    values = list(rows[label])
    known = getattr(rows.features[label], "names", None)  # numbers that stand for names
    if known:
        unknown = [row for row, value in enumerate(values) if value not in range(len(known))]
        if unknown:
            raise DataError(
                f"{name}, row {unknown[0]}: the label is {values[unknown[0]]!r}, which none of its "
                f"{len(known)} classes has ({len(unknown):,} rows like it). Leave such rows out."
            )
        values = [known[value] for value in values]
    names = [f"{name}, row {row}" for row in range(len(values))]
    labels, classes = number_labels(values, names, separator)

    def read(index: int) -> Picture:
        cell: dict[str, Any] = rows[index][image]
        return open_content(cell["bytes"] or Path(cell["path"]).read_bytes())

    fingerprint = getattr(rows, "_fingerprint", name)
    return ImageSet(
        labels=labels,
        classes=classes,
        names=names,
        read=read,
        origin=name,
        hashes=(hashlib.sha256(str(fingerprint).encode()).hexdigest(),),
    )
