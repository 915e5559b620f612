"""Splits by the names that a recipe gives them."""

from itertools import chain
from pathlib import Path

from manyheads.data.images.image_set import (
    ImageSet,
)
from manyheads.data.split_register import reject_test_split
from manyheads.data.text.corpus import Corpus, StreamedCorpus
from manyheads.errors import UsageError, nearest
from manyheads.project.base_recipe import DataTable
from manyheads.project.paths import data_files


def named(split: str, data: DataTable) -> str:
    """Return the name that a recipe gives to a split; refuse a split that it does not name."""
    names = {each: getattr(data, each) for each in ("train", "valid", "test")}
    name: str | None = names.get(split)
    if name is None:
        known = [each for each, found in names.items() if found]
        raise UsageError(
            f"The model's recipe names no split {split!r}{nearest(split, known)}"
            f"It names {', '.join(known)}; or give files with `data`."
        )
    return name


def inputs_of(data: DataTable, other: str | None) -> list[Path]:
    """List the files of all splits of a [data] table, and of `other` data used instead."""
    suffixes = [f".{side}" for side in (getattr(data, "source", ""), getattr(data, "target", ""))]
    splits = (getattr(data, split, None) for split in ("train", "valid", "test"))
    lists = (getattr(data, key, ()) for key in ("vocabulary", "additional", "exclude"))
    names = [*splits, *chain(*lists), getattr(data, "images", None), other]
    return [path for name in names for path in data_files(name, data.root, suffixes)]


def reject_test_splits(*data: Corpus | StreamedCorpus | ImageSet) -> None:
    """Refuse to train or validate on a registered test split."""
    for part in data:
        reject_test_split(part.hashes, part.origin)
        if isinstance(part, Corpus) and part.test:
            raise UsageError(
                f"{part.origin} is a test split: it is measured once, with `final=True`, "
                "and never trained or selected on. Use dates:train and dates:valid."
            )
