"""Splits by the names that a recipe gives them; the sentences that such a name stands for."""

from itertools import chain
from pathlib import Path

from manyheads.data.images.image_set import ImageSet
from manyheads.data.split_register import reject_test_split
from manyheads.data.text.corpus import Corpus, Sentences, StreamedCorpus, read_sentences
from manyheads.errors import RecipeError, UsageError, nearest
from manyheads.project.base_recipe import DataTable
from manyheads.project.paths import data_files, find_data
from manyheads.recipe_data.text_data import SentenceData


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


def reject_test_splits(*data: Corpus | StreamedCorpus | ImageSet | Sentences) -> None:
    """Refuse to train or validate on a registered test split."""
    for part in data:
        reject_test_split(part.hashes, part.origin)
        if isinstance(part, Corpus) and part.test:
            raise UsageError(
                f"{part.origin} is a test split: it is measured once, with `final=True`, "
                "and never trained or selected on. Use dates:train and dates:valid."
            )


def sentences(name: str, data: SentenceData) -> Sentences:
    """Read a text file, which may be one side of a parallel corpus, or a column of a .tsv file."""
    if "*" in name:
        raise RecipeError(f"{name!r} is a pattern: name one text file, one sentence a line.")
    (path,) = find_data(name, data.root)
    table = path.suffixes[-1:] == [".tsv"] or path.suffixes[-2:] == [".tsv", ".gz"]
    if table and data.column is None:
        raise RecipeError(
            f"{name!r} is a table: say which column holds the text, for example data.column=1."
        )
    return read_sentences(path, data.column if table else None)


def sentence_split(split: str, data: SentenceData) -> Sentences:
    """Read the sentences that a recipe names for a split."""
    return sentences(named(split, data), data)


def training_sentences(data: SentenceData) -> tuple[Sentences, Sentences]:
    """Read training and validation sentences; refuse registered test splits."""
    train, valid = sentence_split("train", data), sentence_split("valid", data)
    reject_test_splits(train, valid)
    return train, valid
