"""The [data] tables of parallel text and of single sentences."""

from typing import Self

from pydantic import Field, model_validator

from manyheads.project.base_recipe import DataTable


class PairData(DataTable):
    """Parallel text: "dates:SPLIT" is generated, everything else is a path."""

    has_pairs = True

    valid: str | None = None  # else hold_out pairs of train
    # Pairs held out of train for validation, by their sources: those that differ only in case or
    # punctuation stay together. The run folder lists them in held_out.tsv.
    hold_out: int = Field(default=0, ge=0)
    random_state: int = Field(default=0, ge=0)
    # Pairs of another kind, scored in each validation too: what a model must not forget.
    general: str | None = None
    source: str
    target: str
    # Further corpora, trained on together with `train`; one that is named n times counts n times,
    # "train.tsv[3=tatoeba]" are the rows of a table with that value in a column.
    additional: tuple[str, ...] = ()
    # Corpora, or .tsv files with any number of columns, of which no line may be trained on.
    exclude: tuple[str, ...] = ()
    source_column: int | str | None = None  # of a table; None: named by the language, or the first
    target_column: int | str | None = None

    @model_validator(mode="after")
    def _generated_data_alone(self) -> Self:
        if self.train.startswith("dates:") and (self.additional or self.exclude):
            raise ValueError("additional and exclude are for corpora in files, not for dates:")
        if self.hold_out and (self.valid is not None or self.train.startswith("dates:")):
            raise ValueError(
                "hold_out takes the validation pairs out of the files of train: leave it out where "
                "valid is given or the data are generated"
            )
        if not self.hold_out and self.valid is None:
            raise ValueError("there are no validation pairs: set valid, or hold_out to a number")
        return self

    def split_name(self, split: str) -> str | None:
        """Name a split; pairs held out of the training data have no name of their own."""
        if split == "valid" and self.valid is None:
            return f"{self.hold_out:,} pairs of {self.train}"
        return super().split_name(split)

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
