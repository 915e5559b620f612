"""From the names in a [data] table of single sentences to the sentences."""

from manyheads.data.split_register import reject_test_split
from manyheads.data.text.corpus import Sentences, read_sentences
from manyheads.errors import RecipeError
from manyheads.project.paths import find_data
from manyheads.recipe_data.named_splits import named
from manyheads.recipe_data.text_data import SentenceData


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
    for part in (train, valid):
        reject_test_split(part.hashes, part.origin)
    return train, valid
