"""From the names in a [data] table of single sentences to the sentences."""

from manyheads.app.paths import find_data
from manyheads.app.recipe import SentenceData
from manyheads.data.monolingual import Sentences, read_sentences
from manyheads.data.splits import refuse_test
from manyheads.errors import RecipeError, UsageError, nearest


def sentences(name: str, data: SentenceData) -> Sentences:
    """Read a text file, which may be one side of a parallel corpus, or a column of a .tsv file.

    Raises:
        NotFoundError: there is no such file.
        RecipeError: the name is a pattern, or data.column and the file do not go together.
    """
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
    """Read the sentences that a recipe names for a split.

    Raises:
        UsageError: it names no such split.
    """
    names = {"train": data.train, "valid": data.valid, "test": data.test}
    name = names.get(split)
    if name is None:
        known = [key for key, value in names.items() if value]
        raise UsageError(
            f"The model's recipe names no split {split!r}{nearest(split, known)}"
            f"It names {', '.join(known)}; or give a file with --data."
        )
    return sentences(name, data)


def training_sentences(data: SentenceData) -> tuple[Sentences, Sentences]:
    """Read training and validation sentences.

    Raises:
        UsageError: one of them is a registered test split.
    """
    train, valid = sentence_split("train", data), sentence_split("valid", data)
    for part in (train, valid):
        refuse_test(part.hashes, part.origin)
    return train, valid
