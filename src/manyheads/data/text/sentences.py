"""Sentences of one language, read with the strict line reader."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mode

from manyheads.data.text.corpus import name_lines, read_lines
from manyheads.errors import DataError


@dataclass(frozen=True)
class Sentences:
    """Sentences and the file that they come from."""

    lines: Sequence[str]
    origin: str
    hashes: tuple[str, ...] = ()  # sha256 of each file, for the register of splits

    def __len__(self) -> int:
        return len(self.lines)

    def describe(self, indices: Iterable[int]) -> str:
        """Return the file and line numbers of sentences, for messages."""
        return name_lines(self.origin, (int(index) + 1 for index in indices))


def read_sentences(path: Path, column: int | None = None) -> Sentences:
    """Read one sentence per line, or one column, counted from 1, of a tab-separated file.

    Raises:
        NotFoundError: no such file.
        DataError: the file is empty or not UTF-8, a line is empty or has too few columns.
    """
    lines, content_hash = read_lines(path)
    if column is not None:
        width = max(mode(line.count("\t") for line in lines) + 1, column)
        lines = [_column(path, number, line, column, width) for number, line in enumerate(lines, 1)]
    empty = [number for number, line in enumerate(lines, 1) if not line.strip()]
    if empty:
        more = f" (and {len(empty) - 1} more)" if len(empty) > 1 else ""
        raise DataError(
            f"{path}, line {empty[0]}{more}: the line is empty. Remove it, or fill it in."
        )
    return Sentences(lines, str(path), (content_hash,))


def _column(path: Path, number: int, line: str, column: int, width: int) -> str:
    cells = line.split("\t")
    if len(cells) < column:
        raise DataError(
            f"{path}, line {number}: there is no column {column}, only {len(cells)}. Columns are "
            "separated by tabs and counted from 1; set data.column."
        )
    if len(cells) != width:
        raise DataError(
            f"{path}, line {number}: {len(cells)} columns where {width} are expected. Columns are "
            "separated by tabs: a text has none in it."
        )
    return cells[column - 1]
