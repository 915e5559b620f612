r"""A strict reader for parallel text: what it cannot read it names, and it changes nothing.

Lines end at \n and nowhere else: texts contain other separators (U+2028, form feeds), and general
CSV readers interpret quotes or "null" in them. Only a byte order mark in front and the \r of a
Windows line end are not part of the text.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from manyheads.errors import DataError, NotFoundError


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs, and where they come from."""

    source: list[str]
    target: list[str]
    origin: str
    first_line: int = 1
    groups: list[str] | None = None  # a kind for each pair, reported separately in evaluation
    hashes: tuple[str, ...] = ()  # sha256 of each file, for the register of splits
    test: bool = False  # generated for testing, so no file can be registered

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.source)

    def describe(self, indices: Iterable[int]) -> str:
        """Name pairs as the user knows them: file and line numbers."""
        lines = sorted(int(index) + self.first_line for index in indices)
        shown = ", ".join(map(str, lines[:8])) + (", ..." if len(lines) > 8 else "")
        return f"{self.origin}, {'line' if len(lines) == 1 else 'lines'} {shown}"


def read_lines(path: Path) -> tuple[list[str], str]:
    """Read a UTF-8 file; return its lines and the file's sha256.

    Raises:
        NotFoundError: no such file.
        DataError: it is empty or not UTF-8; the message names the line and byte.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    if not content.strip():
        raise DataError(f"{path} is empty: expected one sentence a line.")
    try:
        text = content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        raise DataError(
            f"{path}, line {line}: byte {column} of the line, 0x{content[error.start]:02x}, is not "
            "valid UTF-8. Convert the file (for example: iconv -f cp949 -t utf-8) or repair "
            "the line."
        ) from error
    lines = text.removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines], hashlib.sha256(content).hexdigest()


def read_parallel(stem: Path, source: str, target: str) -> Corpus:
    """Read sentence pairs from stem.SOURCE and stem.TARGET, or from one .tsv file.

    Raises:
        NotFoundError: a file is missing.
        DataError: empty, not UTF-8, unequal numbers of lines, an empty side, or a line without tab.
    """
    if stem.suffix == ".tsv":
        return _read_tsv(stem)
    paths = [stem.with_name(f"{stem.name}.{language}") for language in (source, target)]
    (sources, source_hash), (targets, target_hash) = map(read_lines, paths)
    if len(sources) != len(targets):
        raise DataError(
            f"{paths[0]} has {len(sources)} lines, {paths[1]} has {len(targets)}: line N of one "
            "must be the translation of line N of the other. Find where they part, or use "
            "a .tsv file."
        )
    for path, lines in zip(paths, (sources, targets), strict=True):
        _refuse_empty(path, lines, "the line")
    return Corpus(
        sources, targets, f"{stem}.{{{source},{target}}}", hashes=(source_hash, target_hash)
    )


def _read_tsv(path: Path) -> Corpus:
    lines, file_hash = read_lines(path)
    pairs = [line.split("\t") for line in lines]
    for number, pair in enumerate(pairs, 1):
        if len(pair) < 2:
            raise DataError(
                f"{path}, line {number}: no tab. A line of a .tsv file is source, tab, target "
                "(further columns are not read)."
            )
    sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    _refuse_empty(path, sources, "the source")
    _refuse_empty(path, targets, "the target")
    return Corpus(sources, targets, str(path), hashes=(file_hash,))


def _refuse_empty(path: Path, lines: list[str], what: str) -> None:
    empty = [number for number, line in enumerate(lines, 1) if not line.strip()]
    if empty:
        more = f" (and {len(empty) - 1} more)" if len(empty) > 1 else ""
        raise DataError(
            f"{path}, line {empty[0]}{more}: {what} is empty. Remove the pair from both sides, "
            "or fill it in."
        )
