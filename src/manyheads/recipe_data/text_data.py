"""The [data] tables of parallel text and of single sentences."""

from typing import Self

from pydantic import Field, model_validator

from manyheads.project.base_recipe import DataTable


class PairData(DataTable):
    """Parallel text: "dates:SPLIT" is generated, everything else is a path."""

    has_pairs = True

    valid: str
    source: str
    target: str
    # Further corpora, trained on together with `train`; one that is named n times counts n times.
    additional: tuple[str, ...] = ()
    # Corpora, or .tsv files with any number of columns, of which no line may be trained on.
    exclude: tuple[str, ...] = ()
    source_column: int | str | None = None  # of a table; None: named by the language, or the first
    target_column: int | str | None = None

    @model_validator(mode="after")
    def _generated_data_alone(self) -> Self:
        if self.train.startswith("dates:") and (self.additional or self.exclude):
            raise ValueError("additional and exclude are for corpora in files, not for dates:")
        return self

    @property
    def language_pair(self) -> tuple[str, str]:
        """Those of the two sides."""
        return self.source, self.target

    @property
    def columns(self) -> tuple[int | str | None, int | str | None]:
        """Columns of a table: source and target."""
        return self.source_column, self.target_column


class SentenceData(DataTable):
    """Single sentences: text files, one sentence a line."""

    valid: str
    column: int | None = Field(default=None, ge=1)  # of a .tsv file


class LanguageData(SentenceData):
    """Sentences of a language model."""

    # Files that the vocabulary is learned from; data.train if empty. A language model that is to
    # start a translator with one vocabulary for both languages learns it from both.
    vocabulary: tuple[str, ...] = ()
