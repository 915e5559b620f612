"""Sentence pairs, labelled sentences and plain text in files of any common form."""

from pathlib import Path

from manyheads.errors import UsageError
from manyheads.own_data.prepared import Options, Prepared


def prepare_table(path: Path, out: Path, options: Options) -> Prepared:
    """Read, clean and split a table of texts, and write a recipe for it."""
    raise UsageError(f"{path}: {options} are not supported here yet, for {out}.")
