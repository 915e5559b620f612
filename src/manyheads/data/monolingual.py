"""Sentences of one language, from the same strict reader as parallel text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from manyheads.data.text import read_lines
from manyheads.errors import DataError


@dataclass(frozen=True)
class Sentences:
    """One sentence a line, and where they come from."""

    lines: Sequence[str]
    origin: str
    hashes: tuple[str, ...] = ()  # sha256 of each file, for the register of splits

    def __len__(self) -> int:
        """Count the sentences."""
        return len(self.lines)

    def describe(self, indices: Iterable[int]) -> str:
        """Name sentences as the user knows them: file and line numbers."""
        numbers = sorted(int(index) + 1 for index in indices)
        shown = ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
        return f"{self.origin}, {'line' if len(numbers) == 1 else 'lines'} {shown}"


def read_sentences(path: Path, column: int | None = None) -> Sentences:
    """Read one sentence a line, or one column of a tab-separated file.

    Args:
        path: a UTF-8 file; one side of a parallel corpus is such a file.
        column: of a .tsv file, counted from 1.

    Raises:
        NotFoundError: no such file.
        DataError: empty, not UTF-8, an empty line, or a line with fewer columns.
    """
    lines, content_hash = read_lines(path)
    if column is not None:
        lines = [_column(path, number, line, column) for number, line in enumerate(lines, 1)]
    empty = [number for number, line in enumerate(lines, 1) if not line.strip()]
    if empty:
        more = f" (and {len(empty) - 1} more)" if len(empty) > 1 else ""
        raise DataError(
            f"{path}, line {empty[0]}{more}: the line is empty. Remove it, or fill it in."
        )
    return Sentences(lines, str(path), (content_hash,))


def _column(path: Path, number: int, line: str, column: int) -> str:
    cells = line.split("\t")
    if len(cells) < column:
        raise DataError(
            f"{path}, line {number}: there is no column {column}, only {len(cells)}. Columns are "
            "separated by tabs and counted from 1; set data.column."
        )
    return cells[column - 1]
