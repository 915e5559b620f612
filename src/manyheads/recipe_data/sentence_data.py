"""The [data] tables of single sentences."""

from pydantic import Field

from manyheads.project.base_recipe import DataTable


class SentenceData(DataTable):
    """Single sentences: text files, one sentence a line."""

    valid: str
    column: int | None = Field(default=None, ge=1)  # of a .tsv file


class LanguageData(SentenceData):
    """Sentences of a language model."""

    # Files that the vocabulary is learned from; data.train if empty. A language model that is to
    # start a translator with one vocabulary for both languages learns it from both.
    vocabulary: tuple[str, ...] = ()
