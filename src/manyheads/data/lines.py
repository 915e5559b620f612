r"""Strict lines of text: what cannot be read is named, and nothing is changed.

Lines end at \n and nowhere else: texts contain other separators (U+2028, form feeds). Only a byte
order mark in front and the \r of a Windows line end are not part of the text. Files ending in .gz
are unpacked while reading.
"""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast

from manyheads.errors import DataError, NotFoundError


class Problem(NamedTuple):
    """Something in a file that a strict reader does not accept."""

    kind: str  # one of the kinds of damage that manyheads.data.checks describes
    line: int
    place: str  # for people: file and line
    message: str
    text: str = ""  # what stands there, as far as it can be shown
    side: str = ""  # "source" or "target", where a file holds one side only
    harmless: bool = False  # read all the same: only a check mentions it


Report = Callable[[Problem], None]


_DAMAGED = (EOFError, OSError, zlib.error)  # what reading a compressed file may raise


def refuse(problem: Problem) -> None:
    """Raise what is a problem; a reader given this function is strict.

    Raises:
        DataError: always, unless the problem is harmless.
    """
    if not problem.harmless:
        raise DataError(f"{problem.place}: {problem.message}")


def ending(path: str | Path) -> str:
    """Return what a name ends in, whether the file is compressed or not: .tsv of a.tsv.gz."""
    return Path(str(path).removesuffix(".gz")).suffix


def open_content(path: Path) -> IO[bytes]:
    """Open a file for reading bytes, unpacked if it is compressed.

    Raises:
        NotFoundError: no such file.
        DataError: it cannot be opened.
    """
    try:
        return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error


def content_hash(path: Path) -> str:
    """Return the sha256 of a file's content, the same whether it is compressed or not.

    Raises:
        NotFoundError: no such file.
        DataError: it cannot be read, or the compressed file is damaged.
    """
    digest = hashlib.sha256()
    for block in blocks(path):
        digest.update(block)
    return digest.hexdigest()


def blocks(path: Path, report: Report = refuse) -> Iterator[bytes]:
    """Yield a file's content in pieces.

    Raises:
        NotFoundError: no such file.
        DataError: it cannot be opened.
    """
    with open_content(path) as file:
        try:
            while block := file.read(1 << 20):
                yield block
        except _DAMAGED as error:
            report(Problem("damaged-gzip", 1, str(path), _unpacking(error)))


def raw_lines(
    path: Path, report: Report = refuse, *, side: str = ""
) -> Iterator[tuple[int, str | None]]:
    r"""Yield each line's number and text with its line end; None for one that was reported.

    Raises:
        NotFoundError: no such file.
        DataError: it cannot be opened.
    """
    number = 0
    with open_content(path) as file:
        try:
            for number, content in enumerate(file, 1):
                if number == 1 and content.startswith(b"\xef\xbb\xbf"):
                    message = "the file begins with a byte order mark."
                    report(_harmless("leading-byte-order-mark", path, 1, message, side))
                yield number, _decode(path, number, content, report, side)
            if number == 0:
                message = "expected one sentence a line."
                report(Problem("empty-file", 1, f"{path} is empty", message, side=side))
        except _DAMAGED as error:
            place = f"{path}, after line {number}"
            report(Problem("damaged-gzip", number + 1, place, _unpacking(error), side=side))


def lines(
    path: Path, report: Report = refuse, *, side: str = ""
) -> Iterator[tuple[int, str | None]]:
    r"""Yield each line's number and text, without \n or \r\n; None for one that was reported."""
    windows = False
    for number, text in raw_lines(path, report, side=side):
        if text is not None and text.endswith("\r\n") and not windows:
            windows = True
            message = "the file has Windows line ends (\\r\\n)."
            report(_harmless("windows-line-ends", path, number, message, side))
        yield number, None if text is None else text.removesuffix("\n").removesuffix("\r")


def _decode(path: Path, number: int, content: bytes, report: Report, side: str) -> str | None:
    start = 3 if number == 1 and content.startswith(b"\xef\xbb\xbf") else 0
    try:
        return content[start:].decode("utf-8")
    except UnicodeDecodeError as error:
        position = start + error.start
        report(
            Problem(
                "invalid-utf8",
                number,
                f"{path}, line {number}",
                f"byte {position + 1} of the line, 0x{content[position]:02x}, is not valid UTF-8. "
                "Convert the file (for example: iconv -f cp949 -t utf-8) or repair the line.",
                content.decode("utf-8", "backslashreplace").rstrip("\r\n"),
                side,
            )
        )
        return None


def _harmless(kind: str, path: Path, number: int, message: str, side: str) -> Problem:
    return Problem(kind, number, f"{path}, line {number}", message, side=side, harmless=True)


def _unpacking(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "the compressed file is cut off. Copy or download it again."
    if isinstance(error, gzip.BadGzipFile) and "Not a gzipped file" in str(error):
        return "its name ends in .gz, but it is not compressed with gzip. Rename or compress it."
    if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
        return f"the file cannot be read: {error.strerror}."
    return f"the compressed file is damaged ({error}). Copy or download it again."
