"""Labelled pictures by their name on the Hugging Face hub."""

import hashlib
from pathlib import Path

from manyheads.data.formats import HUB
from manyheads.data.images import ImageSet, number_labels
from manyheads.data.pictures import open_cell
from manyheads.errors import DataError, MissingExtraError, UsageError


def read_hub(name: str, image: str, label: str | None, separator: str | None = None) -> ImageSet:
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
                f"which none of its {len(known)} classes has ({len(unknown):,} rows like it). "
                "Leave such rows out."
            )
        values = [known[value] for value in values]
    names = [f"{name}, row {row}" for row in range(1, len(rows) + 1)]
    labels, classes = number_labels(values, names, separator)
    fingerprint = getattr(rows, "_fingerprint", name)
    return ImageSet(
        labels=labels,
        classes=classes,
        names=names,
        read=lambda index: open_cell(rows[index][image], Path()),
        origin=name,
        hashes=(hashlib.sha256(str(fingerprint).encode()).hexdigest(),),
    )
