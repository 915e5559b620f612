"""Readers of parallel text: two files, .tsv, .csv, .jsonl, .parquet, .tmx, or a hub data set.

FORMATS has one reader per file ending. Each reader is strict: a line that breaks the format is
reported with its number, and nothing is repaired or skipped (translation memory units without one
of the two languages are not pairs). With another `report` than `refuse`, a reader reports the line
and continues with the next one; manyheads.data.checks.text_checks checks a corpus this way.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice, zip_longest
from pathlib import Path
from statistics import mode
from typing import Any, NamedTuple
from xml.parsers import expat

from manyheads.data.text.encoding import is_valid_unicode, unicode_encoding
from manyheads.data.text.lines import LONGEST, Problem, Report, blocks, ending, lines, refuse
from manyheads.data.text.rows import (
    HUB,
    TEXTS,
    Row,
    column_type,
    csv_rows,
    hub_rows,
    json_rows,
    parquet_rows,
    tsv_rows,
)
from manyheads.errors import DataError, UsageError
from manyheads.registration import checked_ending, register

SIDES = ("source", "target")


class Pair(NamedTuple):
    """A sentence, its translation, and their line, or row of a table."""

    line: int
    source: str
    target: str


class Columns(NamedTuple):
    """The columns of the two sides: header names, or numbers counted from 1."""

    source: str | int
    target: str | int


FIRST_ROWS = 100  # of a table without a header: they tell how many columns it has
PLAIN_TSV = Columns(1, 2)  # a .tsv file of which nothing is said: it has two columns, no more

Wanted = tuple[str | int | None, str | int | None]  # columns; None: named by the language
Reader = Callable[[Path, Columns, Report], Iterator[Pair]]


def read_pairs(
    path: str | Path,
    source: str,
    target: str,
    *,
    columns: Wanted = (None, None),
    report: Report = refuse,
) -> Iterator[Pair]:
    """Yield the pairs of a corpus one by one, in order.

    Args:
        path: the stem of two files (train for train.en and train.de), one file with an ending of
            FORMATS (both may be compressed: .gz), or the name of a data set on the hub.
        source: source language; also the ending of its file or the name of its column.
        target: the same for the target side.
        columns: columns, if they are not named by the languages. A number counts the columns of a
            .tsv or .csv file without header from 1; a name in a .tsv means it has a header.
        report: called with each problem; the default raises a DataError.

    Raises:
        NotFoundError: a file is missing.
        DataError: a file is empty or breaks its format, or a side of a pair is empty.
        MissingExtraError: a package for this format is not installed.
    """
    name, files = str(path), corpus_files(path, source, target)
    one, other = columns
    wanted = Columns(source if one is None else one, target if other is None else other)
    silent = True

    def noted(problem: Problem) -> None:
        nonlocal silent
        silent = silent and problem.harmless
        report(problem)

    pairs: Iterator[Pair]
    if name.startswith(HUB):
        pairs = _texts(hub_rows(name), wanted, noted)
    elif not is_one_file(path):
        pairs = _two_files(files, noted)
    else:
        positions = ending(path) == ".tsv" and columns == (None, None)
        pairs = FORMATS[ending(path)](files[0], PLAIN_TSV if positions else wanted, noted)
    names = [str(file) for file in files] or [name]
    pair = None
    for pair in pairs:
        if pair.source.strip() and pair.target.strip():
            yield pair
            continue
        for side, text, file in zip(SIDES, pair[1:], (names[0], names[-1]), strict=True):
            if not text.strip():
                message = (
                    f"the {side} is empty. Remove the pair from both sides, or fill it in "
                    "(`manyheads check-data` lists all such lines)."
                )
                shown = f"{pair.source}\t{pair.target}"
                place = f"{file}, line {pair.line}"
                report(Problem("empty-side", pair.line, place, message, shown, side))
    if pair is None and silent:
        message = "it has no pair, only empty lines or a header. Copy or export it again."
        report(Problem("no-pairs", 1, " and ".join(names), message))


def corpus_files(path: str | Path, source: str, target: str) -> list[Path]:
    """Return the files of a corpus: two, one, or none for a data set on the hub."""
    if str(path).startswith(HUB):
        return []
    path = Path(path)
    if is_one_file(path):
        return [path]
    plain = [path.with_name(f"{path.name}.{side}") for side in (source, target)]
    packed = [Path(f"{each}.gz") for each in plain]
    both = zip(plain, packed, strict=True)
    return [gz if gz.exists() and not each.exists() else each for each, gz in both]


def is_one_file(path: str | Path) -> bool:
    """Return whether a path is one file with both sides, not the stem of two files."""
    return ending(path) in FORMATS


# --- Lines: two files, .tsv, .csv, .jsonl -------------------------------------------------------


def _two_files(files: list[Path], report: Report) -> Iterator[Pair]:
    sides = [lines(file, report, side=s) for file, s in zip(files, SIDES, strict=True)]
    counts = [0, 0]
    for first, second in zip_longest(*sides):
        if first is not None and second is not None:
            (number, source), (_, target) = first, second
            if source is not None and target is not None:
                yield Pair(number, source, target)
        counts[0] += first is not None
        counts[1] += second is not None
    if counts[0] != counts[1] and min(counts) > 0:
        place = f"{files[0]} has {counts[0]:,} lines, {files[1]} has {counts[1]:,}"
        message = (
            "line N of one must be the translation of line N of the other. Find the missing or "
            "extra line, or use a .tsv file."
        )
        report(Problem("unequal-counts", min(counts) + 1, place, message))


def _tsv(path: Path, columns: Columns, report: Report) -> Iterator[Pair]:
    no_tab = "no tab. A line of a .tsv file is source, tab, target."
    return _table(path, tsv_rows(path, report), columns, report, no_tab)


def _csv(path: Path, columns: Columns, report: Report) -> Iterator[Pair]:
    return _table(path, csv_rows(path, report), columns, report, "only one field.")


def _table(
    path: Path,
    rows: Iterator[tuple[int, list[str] | None]],
    columns: Columns,
    report: Report,
    too_few: str,
) -> Iterator[Pair]:
    """Select two columns: names are looked up in the header; numbers mean no header.

    All rows have the same number of fields: two, or that of the header, else of most rows.
    """
    width = 2 if columns is PLAIN_TSV else None
    if isinstance(columns.source, str) or isinstance(columns.target, str):
        _, header = next(rows, (0, None))
        if header is None:  # an empty file, or a line that was reported
            return
        width = len(header)
        if unknown := [n for n in columns if isinstance(n, str) and header.count(n) != 1]:
            message = (
                f"{'two columns are' if unknown[0] in header else 'no column is'} called "
                f"{unknown[0]!r}; the first line is {', '.join(map(repr, header))[:200]}. Name "
                "the columns with data.source_column and data.target_column; numbers count them "
                "from 1 in a file without a header."
            )
            report(Problem("missing-column", 1, f"{path}, line 1", message, "\t".join(header)))
            return
        indices = [n - 1 if isinstance(n, int) else header.index(n) for n in columns]
    else:
        indices = [columns.source - 1, columns.target - 1]
    if min(indices) < 0:
        raise UsageError(f"Columns are counted from 1; given: {columns.source}, {columns.target}.")
    if width is None:
        first = list(islice(rows, FIRST_ROWS))
        width = mode([len(row) for _, row in first if row] or [0])
        rows = chain(first, rows)
    width = max(width, *(index + 1 for index in indices))
    for number, row in rows:
        if row is None:
            continue
        if len(row) == width:
            yield Pair(number, row[indices[0]], row[indices[1]])
            continue
        kind = "missing-column" if len(row) < width else "extra-column"
        message = f"{len(row)} fields where {width} are expected."
        if kind == "extra-column":
            message += (
                " A text has no tab in it (in a .csv, quote it); or say which columns hold the "
                "texts: data.source_column and data.target_column, as numbers from 1."
            )
        message = too_few if len(row) < 2 else message
        report(Problem(kind, number, f"{path}, line {number}", message, "\t".join(row)))


# --- Rows: .jsonl, .parquet, the hub ------------------------------------------------------------


def _texts(rows: Iterable[Row], columns: Columns, report: Report) -> Iterator[Pair]:
    """Yield the pair of each row: {"en": ..., "de": ...}, or that under "translation"."""
    for number, place, row in rows:
        direct = not isinstance(row, Mapping) or columns.source in row
        nested = row if direct else row.get("translation", row)
        table: Mapping[Any, Any] = nested if isinstance(nested, Mapping) else {}
        texts: list[Any] = [table.get(name) for name in columns]
        for name, text in zip(columns, texts, strict=True):
            if not isinstance(text, str):
                keys = ", ".join(map(repr, table)) if table is nested else type(row).__name__
                keys = f"{text!r:.100}" if name in table else keys[:200] or "nothing"
                message = (
                    f"no text under {name!r}; found: {keys}. Name the keys with "
                    "data.source_column and data.target_column."
                )
                report(Problem("missing-column", number, place, message, str(row)[:500]))
                break
            if not is_valid_unicode(text):
                message = (
                    f"{name!r} contains a lone surrogate: escape both halves of the character."
                )
                report(Problem("invalid-utf8", number, place, message, ascii(text)))
                break
        else:
            yield Pair(number, *texts)


def _parquet(path: Path, columns: Columns, report: Report) -> Iterator[Pair]:
    def choose(types: Mapping[str, Any]) -> list[str]:
        nested, prefix = types.get("translation"), ""
        if str(columns.source) not in types and str(nested).startswith("struct"):
            types, prefix = {field.name: field.type for field in nested or ()}, "translation."
        if not set(map(str, columns)) <= set(types):
            message = (
                f"no columns {columns.source!r} and {columns.target!r}; there are "
                f"{', '.join(types)}. Name them with data.source_column and data.target_column."
            )
        elif others := [name for name in columns if column_type(types[str(name)]) not in TEXTS]:
            message = f"no text under {others[0]!r}, but {types[str(others[0])]}. Write it as text."
        else:
            return [f"{prefix}{name}" for name in columns]
        report(Problem("missing-column", 1, str(path), message))
        return []

    rows = parquet_rows(path, choose, report, size=10_000, extra="text")
    filled = (Row(n, place, {k: v or "" for k, v in row.items()}) for n, place, row in rows)
    return _texts(filled, columns, report)


# --- TMX ----------------------------------------------------------------------------------------


# Inline elements of TMX 1.4b that hold codes of the format a text came from, not text.
_CODES = {"bpt", "ept", "it", "ph", "ut"}


# Encodings of several bytes a character that the parser does not know.
_MULTIBYTE = {"big5", "cp932", "cp949", "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "johab"}
_MULTIBYTE |= {"iso2022_jp", "shift_jis", "utf-32-be", "utf-32-le"}


class _Units:
    """Collects the translation units of a TMX file while it is parsed."""

    def __init__(self, path: Path, columns: Columns, encoding: str | None) -> None:
        self.path = path
        self.columns = [str(name).lower() for name in columns]
        self.parser = expat.ParserCreate(encoding)
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._entity
        self.parser.SkippedEntityHandler = self._skipped
        self.done: list[Pair] = []
        self.problems: list[Problem] = []
        self.languages: dict[str, None] = {}
        self._line = 0
        self._segments: dict[str, str] = {}
        self._language = ""
        self._parts: list[str] | None = None
        self._length = 0
        self._unknown: str | None = None  # an entity in the unit
        self._codes = 0

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "tu":
            self._line, self._segments = self.parser.CurrentLineNumber, {}
            self._unknown = None
        elif tag == "tuv":
            language = attributes.get("xml:lang") or attributes.get("lang") or ""
            self._language = language.lower().replace("_", "-")
            self.languages[self._language] = None
        elif tag == "seg":
            self._parts, self._length = [], 0
        elif tag in _CODES:
            self._codes += 1

    def _end(self, tag: str) -> None:
        if tag == "seg":
            self._segments.setdefault(self._language, "".join(self._parts or []))
            self._parts = None
        elif tag in _CODES:
            self._codes -= 1
        elif tag == "tu":
            texts = [self._choose(name) for name in self.columns]
            if texts[0] is None or texts[1] is None:
                message = f"the unit lacks {' or '.join(self.columns)}; it is not a pair."
                self._report("incomplete-unit", message, harmless=True)
            elif self._unknown is not None:
                message = (
                    f"the unit has the entity &{self._unknown};, which another file declares. "
                    "Replace it by its text."
                )
                self._report("invalid-record", message)
            else:
                self.done.append(Pair(self._line, texts[0], texts[1]))

    def _report(self, kind: str, message: str, *, harmless: bool = False) -> None:
        place, text = f"{self.path}, line {self._line}", "\t".join(self._segments.values())
        self.problems.append(Problem(kind, self._line, place, message, text, harmless=harmless))

    def _text(self, text: str) -> None:
        if self._parts is not None and not self._codes:
            self._parts.append(text)
            self._length += len(text)
            self.bound(self._length)

    def bound(self, length: int) -> None:
        """Refuse a text, a tag or a comment without an end."""
        if length > LONGEST:
            raise DataError(
                f"{self.path}, line {self.parser.CurrentLineNumber}: a text, tag or comment of "
                f"more than {LONGEST:,} characters. Export the file again."
            )

    def _choose(self, language: str) -> str | None:
        if language in self._segments:
            return self._segments[language]
        prefix = f"{language}-"
        return next((t for known, t in self._segments.items() if known.startswith(prefix)), None)

    def _entity(self, name: str, *_: object) -> None:
        # Entities could open other files, or expand a small file into a huge text.
        raise DataError(
            f"{self.path}, line {self.parser.CurrentLineNumber}: it declares the entity {name!r}. "
            "Entities are not supported: replace it by its text."
        )

    def _skipped(self, name: str, parameter: bool) -> None:
        # Declared in a DTD, which is not read: the text would lack it.
        if not parameter and self._parts is not None:
            self._unknown = name


def _tmx(path: Path, columns: Columns, report: Report) -> Iterator[Pair]:
    content = blocks(path, report)
    first = next(content, b"")
    decoder = _decoder(first)
    units = _Units(path, columns, None if decoder is None else "UTF-8")
    found, read = False, 0
    for block in chain([first] if first else [], content, [b""]):
        wrong = ""
        try:
            plain = decoder.decode(block, not block).encode() if decoder is not None else block
            units.parser.Parse(plain, not block)
            read += len(plain)
        except expat.ExpatError as error:
            wrong = expat.ErrorString(error.code)
        except (LookupError, ValueError) as error:
            wrong = f"its first line names the encoding, and {error}"
        found = found or bool(units.done) or any(not each.harmless for each in units.problems)
        yield from units.done
        for problem in units.problems:
            report(problem)
        units.done, units.problems = [], []
        if wrong:
            line = units.parser.ErrorLineNumber
            message = f"not valid XML ({wrong}). Export the file again."
            report(Problem("invalid-record", line, f"{path}, line {line}", message))
            return
        units.bound(read - units.parser.CurrentByteIndex)
    if not found:
        known = ", ".join(map(repr, units.languages))[:200] or "none"
        message = f"no unit has both {columns.source!r} and {columns.target!r}; languages: {known}."
        report(Problem("missing-column", 1, str(path), message))


def _decoder(head: bytes) -> codecs.IncrementalDecoder | None:
    """Return a decoder for an encoding that the parser does not know: of several bytes each."""
    named = re.match(rb"""\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)""", head)
    name = unicode_encoding(head)
    try:
        if named and name == "utf-8":
            name = codecs.lookup(named[1].decode("ascii")).name
    except (LookupError, UnicodeError):
        return None
    return codecs.getincrementaldecoder(name)() if name in _MULTIBYTE else None


FORMATS: dict[str, Reader] = {
    ".tsv": _tsv,
    ".csv": _csv,
    ".jsonl": lambda path, columns, report: _texts(json_rows(path, report), columns, report),
    ".parquet": _parquet,
    ".tmx": _tmx,
}


def register_text_format(ending: str, reader: Reader) -> None:
    """Add the reader of parallel text in files with this ending, such as ".bars".

    Raises:
        UsageError: the ending is not one, or has a reader; the reader cannot be called.
    """
    wanted = "A reader is a function of path, columns and report that yields pairs."
    lacks = ["being a function"] * (not callable(reader))
    register(FORMATS, "a text format", checked_ending(ending), reader, wanted, lacks)
