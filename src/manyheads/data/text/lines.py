r"""Strict reader of text lines: an unreadable line is reported with its number, never changed.

Lines end at \n and nowhere else: texts contain other separators (U+2028, form feeds). Only a byte
order mark at the start and the \r of a Windows line end are removed. Files whose name ends in .gz
are decompressed while reading. A line has at most LONGEST bytes, so that a file without line ends
does not fill the memory.
"""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import IO, NamedTuple, cast

from manyheads.data.regular_files import require_regular
from manyheads.data.text.encoding import SAMPLE, unicode_encoding
from manyheads.errors import DataError, NotFoundError

LONGEST = 1 << 20  # bytes of a line


class Problem(NamedTuple):
    """A line or file that a strict reader does not accept."""

    kind: str  # a key of manyheads.data.checks.issue_types.ISSUE_TYPES
    line: int
    place: str  # file and line, for messages
    message: str
    text: str = ""  # the text of the line, as far as it can be decoded
    side: str = ""  # "source" or "target", if the file holds one side only
    harmless: bool = False  # the line can be read; only `check-data` reports it


Report = Callable[[Problem], None]


_DAMAGED = (EOFError, OSError, zlib.error)  # raised when a compressed file is damaged


def refuse(problem: Problem) -> None:
    """Raise a problem as an error; the default of all readers.

    Raises:
        DataError: always, unless the problem is harmless.
    """
    if not problem.harmless:
        raise DataError(f"{problem.place}: {problem.message}")


def ending(path: str | Path) -> str:
    """Return the suffix of a file name without .gz: .tsv for a.tsv.gz."""
    return Path(str(path).removesuffix(".gz")).suffix


def open_content(path: Path) -> IO[bytes]:
    """Open a file for reading bytes, as all readers do; a .gz file is decompressed.

    Raises:
        NotFoundError: no such file.
        DataError: the file cannot be opened.
    """
    try:
        require_regular(path)
        return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error


def content_hash(path: Path) -> str:
    """Return the sha256 of a file's decompressed content."""
    digest = hashlib.sha256()
    for block in blocks(path):
        digest.update(block)
    return digest.hexdigest()


def blocks(path: Path, report: Report = refuse) -> Iterator[bytes]:
    """Yield a file's content in blocks of 1 MiB."""
    with open_content(path) as file:
        try:
            while block := file.read(1 << 20):
                yield block
        except _DAMAGED as error:
            report(Problem("damaged-gzip", 1, str(path), _unpacking(error)))


def raw_lines(
    path: Path, report: Report = refuse, *, side: str = ""
) -> Iterator[tuple[int, str | None]]:
    r"""Yield each line's number and its text with line end; None for a line that was reported."""
    number = 0
    with open_content(path) as file:
        try:
            encoding = unicode_encoding(cast(BufferedReader, file).peek(SAMPLE))
            if encoding != "utf-8":
                wide = encoding[:6].upper()
                message = (
                    f"it is {wide}, not UTF-8. Convert it: iconv -f {wide} -t UTF-8, or save it "
                    "as UTF-8."
                )
                report(Problem("wide-encoding", 1, str(path), message, side=side))
                return
            for number, content in enumerate(iter(partial(file.readline, LONGEST + 1), b""), 1):
                if len(content) > LONGEST:
                    message = (
                        f"it has more than {LONGEST:,} bytes. One sentence a line is expected: has "
                        "the file no line ends, or is it no text?"
                    )
                    place = f"{path}, line {number}"
                    report(Problem("endless-line", number, place, message, side=side))
                    while content and not content.endswith(b"\n"):
                        content = file.readline(LONGEST)
                    yield number, None
                    continue
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
    r"""Yield each line's number and text without \n or \r\n; None for a line that was reported."""
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
