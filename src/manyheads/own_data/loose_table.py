"""Read a table of texts that nobody has prepared: any encoding, separator, header or quoting.

The strict readers of `data/text` refuse what they were not told; here it is guessed, and said.
"""

import csv
import glob
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from manyheads.data.documents.office import XLSX, unpack
from manyheads.data.text.encoding import decode, unicode_encoding
from manyheads.data.text.formats import read_pairs
from manyheads.data.text.languages import base, header_words, is_language_code
from manyheads.data.text.lines import LONGEST, blocks, ending, refuse
from manyheads.data.text.rows import parquet_rows
from manyheads.errors import DataError, NotFoundError, UsageError
from manyheads.own_data.prepared import EXAMPLES, Finding, finding_of
from manyheads.strict_json import loads

QUOTED = 1 << 20  # characters that tell the separator of quoted cells
BEGIN = 2000  # characters that tell what is no table
MOST = 1 << 30  # bytes of a file: all of it is in memory
LINES = 20  # of a quoted cell, above which its quote has no end
REPEATS = 10  # of a label, on average, in a column of labels
ROWS_OF_NUMBERS = 5  # that tell a name above them from a number that is missing
FEW = 10  # lines, below which nothing is said about an encoding
HANGUL = 0.9  # of what is not ASCII: the rest are marks and Chinese characters
ACCENTS = 0.25  # of the characters: more than any language has that Windows-1252 is for
LOOKED_AT = 500  # rows that tell separator and header
SEPARATORS = {"\t": "tab", ";": "semicolon", "|": "pipe", ",": "comma"}
_KINDS = (
    (b"PK\x03\x04", "a ZIP archive", "unpack it; an office document, save as .xlsx or .csv"),
    (b"BZh", "compressed", "unpack it, with bunzip2"),
    (b"\xfd7zXZ", "compressed", "unpack it, with unxz"),
    (b"\x28\xb5\x2f\xfd", "compressed", "unpack it, with unzstd"),
    (b"%PDF", "a PDF", "export its text as a table: .csv or .tsv"),
    (b"\x89PNG", "an image", "give a folder of images"),
    (b"\xff\xd8\xff", "an image", "give a folder of images"),
    (b"SQLite format 3", "a database", "export the table as .csv"),
    (b"\xd0\xcf\x11\xe0", "an old office document (.xls, .doc)", "save it as .xlsx or .csv"),
)
# Texts that are no tables, by how they begin.
_TEXTS = (
    (r"(?m)^msgid \"", "a gettext catalogue", "convert it with po2csv (translate-toolkit)"),
    (r"(?m)^[\d:]{5,8}[,.]\d+ -->", "subtitles", "give their sentences alone, one a line"),
    (r"\A(?:---\s*\n)?- [\w-]+: .*\n  [\w-]+: ", "YAML", "write it as .json"),
    (r"\A\s*(?i:<!doctype html|<html)", "HTML", "export sentence pairs as .csv or .tsv"),
    (r"\A\s*(?i:<\?xml|<tmx|<xliff)", "XML", "export pairs as .csv, or as .tmx"),
)
Rows = list[tuple[int, list[str]]]  # each with its line or number
_NAMES = {"label", "labels", "class", "category", "sentiment", "intent", "score", "comment", "note"}
_NAMES |= {"notes", "domain", "file", "name", "number", "date", "url", "caption", "quality"}
_MARK = re.compile(r"(?<! ) *(?:=>|->|\u2192) *|(?<=\S) {3,}(?=\S)")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


class Table(NamedTuple):
    """Rows of cells, and what was found while reading."""

    rows: Rows
    header: list[str]  # names of the columns; none if the first row is data
    form: str  # for people: "semicolon-separated, Windows-1252"
    findings: list[Finding]

    @property
    def width(self) -> int:
        """Number of columns."""
        return max(len(self.header), *(len(cells) for _, cells in self.rows), 0, 0)


def read_table(path: Path, languages: Sequence[str] = ()) -> Table:
    """Read any table, or lines of plain text (one column), or two files with one side each.

    Args:
        path: of a file, or the stem of two: train for train.en and train.de.
        languages: of the two files, or of a translation memory; by default those there are.

    Raises:
        NotFoundError: there is nothing at the path.
        DataError: there are no rows; it is no text, or too large.
        MissingExtraError: a .parquet file without pyarrow.
    """
    table = _read(path, languages)
    if not table.rows:
        found = ", ".join(each.kind for each in table.findings)
        held = "a header and no row" if table.header else "no row"
        raise DataError(
            f"{path} has {held}{f' ({found})' if found else ''}: give one with an example a line."
        )
    return table


def _read(path: Path, languages: Sequence[str]) -> Table:
    if not path.exists():
        return _two_files(path, languages)
    form = ending(path).lower()
    if form == ".tmx":
        return _memory(path, languages)
    if form == ".parquet":
        records = parquet_rows(path, list, refuse, size=10_000, extra="text")
        return _objects((record.cells for record in records), "parquet", [])
    content = _content(path)
    if form == ".xlsx":
        return _with_header(list(_sheet(content, str(path))), "the first sheet", [])
    _refuse_binary(path, content)
    text, encoding, findings = _decode(content, path)
    if form in (".jsonl", ".ndjson", ".json") or text.lstrip()[:1] in ("{", "["):
        return _objects(_json(text, path, findings), f"JSON, {encoding}", findings)
    for beginning, what, then in _TEXTS:
        if re.search(beginning, text[:BEGIN]):
            raise DataError(f"{path} is {what}, and no table: {then}.")
    if "\n" not in text and "\r" in text:
        text = text.replace("\r", "\n")
    text = re.sub(r"\A\"?sep=.\"?\r?\n", "\n", text)  # for Excel
    if (windows := text.count("\r\n")) > 0:
        findings.append(Finding("windows-line-ends", windows, (), "removed: \\r\\n ends a line"))
    # Where cells have line ends, rows show only without what is quoted.
    separator = _separator(text, form) or _separator(_QUOTED.sub("", text[:QUOTED]), form)
    sample = [line for line in text[:QUOTED].splitlines() if line.strip()][:LOOKED_AT]
    if not separator and sum(len(_MARK.findall(line)) == 1 for line in sample) > 0.89 * len(sample):
        text, separator = _MARK.sub("\t", text), "\t"
        findings.append(Finding("marks", 1, (), "arrows or wide gaps between cells: read as tabs"))
    rows = _split(text.replace("\r\n", "\n"), separator, findings)
    name = f"{SEPARATORS[separator]}-separated" if separator else "lines of text"
    return _with_header(rows, f"{name}, {encoding}", findings)


def _two_files(stem: Path, languages: Sequence[str]) -> Table:
    beside = {
        path.suffix[1:]: path
        for path in sorted(stem.parent.glob(f"{glob.escape(stem.name)}.*"))
        if is_language_code(path.suffix[1:]) and path.suffix[1:] != "toml" and stem.name
    }
    codes = [code for code in languages or beside if code in beside]
    if len(codes) != 2:
        known = f" There are {', '.join(str(p) for p in beside.values())}." if beside else ""
        raise NotFoundError(
            f"There is nothing at {stem.absolute()}.{known} Give a file of sentence pairs or "
            "texts, a folder of images, or the stem of two files such as train.en and train.de."
        )
    sides = [_read(beside[code], ()) for code in codes]
    texts = [[" ".join(cells) for _, cells in side.rows] for side in sides]
    if len(texts[0]) != len(texts[1]):
        counts = " and ".join(f"{len(side):,}" for side in texts)
        raise DataError(
            f"{stem}: {counts} lines with text. Line N of one file must be the translation of line "
            "N of the other: find the missing line, or give one table."
        )
    rows = [(n, list(row)) for n, row in enumerate(zip(*texts, strict=True), 1)]
    findings = [*sides[0].findings, *sides[1].findings]
    return Table(rows, codes, f"two files ({sides[0].form})", findings)


def _memory(path: Path, languages: Sequence[str]) -> Table:
    """Read a translation memory in two of its languages, the most frequent ones by default."""
    text = "".join(block.decode("utf-8", "ignore") for block in blocks(path))
    known = Counter(re.findall(r"<tuv[^<>]*?lang=[\"']([A-Za-z-]+)", text.replace("\0", "")))
    codes = list(languages) or [code for code, _ in known.most_common(2)]
    if len(codes) != 2:
        raise DataError(
            f"{path}: two languages are needed; there are {', '.join(known) or 'none'}."
        )
    wrong: Counter[str] = Counter()
    pairs = list(read_pairs(path, *codes, report=lambda problem: wrong.update([problem.kind])))
    findings = [Finding(kind, count, (), "left out") for kind, count in wrong.items()]
    rows = [(pair.line, [pair.source, pair.target]) for pair in pairs]
    return Table(rows, [base(code) for code in codes], "a translation memory", findings)


# --- From bytes to text -------------------------------------------------------------------------


def _content(path: Path) -> bytes:
    content = bytearray()
    for block in blocks(path):
        content += block
        if len(content) > MOST:
            raise DataError(
                f"{path} has more than {MOST >> 20:,} MB, and is read whole here. Clean it with "
                "`manyheads check-data` and `fix`, and write a recipe as docs/data.md shows."
            )
    if not content.strip():
        raise DataError(f"{path} is empty: copy or export it again.")
    return bytes(content)


def _refuse_binary(path: Path, content: bytes) -> None:
    for mark, what, then in _KINDS:
        if content.startswith(mark):
            raise DataError(f"{path} is {what}: {then}.")
    head = content[: 1 << 14]
    strange = sum(byte < 32 and byte not in b"\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f" for byte in head)
    if unicode_encoding(content) == "utf-8" and strange > len(head) // 50:
        raise DataError(f"{path} is no text: give a table of texts, .csv, .tsv, .jsonl or .xlsx.")


def _decode(content: bytes, path: Path) -> tuple[str, str, list[Finding]]:
    """Decode by what the bytes speak for; lines that are not UTF-8 one by one."""
    encoding = unicode_encoding(content)
    if encoding != "utf-8":
        text, name = decode(content, str(path))[0].removeprefix("\ufeff"), encoding[:6].upper()
        return text, name, [Finding("encoding", 1, (), f"read as {name}, written as UTF-8")]
    findings = []
    if content.startswith(b"\xef\xbb\xbf"):
        content = content[3:]
        findings.append(Finding("byte-order-mark", 1, (), "removed at the beginning of the file"))
    try:
        return content.decode("utf-8"), "UTF-8", findings
    except UnicodeDecodeError:
        lines = content.split(b"\n")
    wrong = [number for number, line in enumerate(lines) if not _is(line, "utf-8")]
    korean = _is_korean([lines[number] for number in wrong])
    legacy, name = ("cp949", "CP949 (EUC-KR)") if korean else ("cp1252", "Windows-1252")
    # Five bytes that Windows-1252 leaves open are those of Latin-1.
    tried = ("utf-8", legacy, "latin-1")
    decoded = [line.decode(next(each for each in tried if _is(line, each))) for line in lines]
    if not korean and len(wrong) >= FEW and _is_gibberish([decoded[n] for n in wrong]):
        raise DataError(
            f"{path} is not in UTF-8, CP949 or Windows-1252. Convert it: `iconv -f CP1251 -t UTF-8 "
            "FILE > NEW` for Russian, CP932 in place of CP1251 for Japanese, GB18030 for Chinese."
        )
    if sum(not line.isascii() for line in lines) == len(wrong):
        findings.append(Finding("encoding", 1, (), f"read as {name}, written as UTF-8"))
        return "\n".join(decoded), name, findings
    places = [f"line {n + 1}: {decoded[n].strip()}" for n in wrong]
    findings += finding_of("invalid-utf8", places, f"not valid UTF-8: read as {name}")
    return "\n".join(decoded), f"UTF-8 and {name}", findings


def _is_korean(lines: Sequence[bytes]) -> bool:
    """Tell whether most lines are Hangul in EUC-KR.

    To its extension, CP949, quotes of Windows-1252 with the letter behind them are Hangul, too.
    """
    read = [line.decode("euc_kr") for line in lines if _is(line, "euc_kr")]
    signs = re.sub("[\0-\x7f]", "", "".join(read))
    return len(read) >= len(lines) / 2 and len(re.findall("[가-힣]", signs)) > HANGUL * len(signs)


def _is_gibberish(lines: Sequence[str]) -> bool:
    """Tell whether text has more accents and signs than any that Windows-1252 is for."""
    signs = "".join("".join(lines).split())
    return sum(not sign.isascii() for sign in signs) > ACCENTS * len(signs)


def _is(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


# --- From text to rows --------------------------------------------------------------------------


def _separator(text: str, form: str) -> str:
    """Choose what divides most lines into as many cells; none: lines of text."""
    sample = list(islice((line for line in text.splitlines() if line.strip()), LOOKED_AT))
    scores = {}
    for separator in SEPARATORS:
        counts = Counter(_QUOTED.sub("", line).count(separator) for line in sample)
        most = max((n for n in counts if n), key=counts.__getitem__, default=0)
        scores[separator] = counts[most] / max(1, len(sample)) if most else 0.0
        # Of two that divide lines alike, the one that comes first and has no space behind it.
        if most:
            first = [_QUOTED.sub("", line).find(separator) for line in sample]
            spaced = sum(f"{separator} " in line for line in sample)
            scores[separator] -= 1e-6 * spaced + 1e-9 * min(1000, sum(first) / len(first))
    if scores["\t"] and (scores["\t"] > 0.49 or form == ".tsv"):
        return "\t"
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] >= (0.29 if form == ".csv" else 0.89) else ""


def _split(text: str, separator: str, findings: list[Finding]) -> Rows:
    lines = text.split("\n")
    long = [n for n, line in enumerate(lines, 1) if len(line) > LONGEST]
    for number in long:
        lines[number - 1] = ""
    done = f"dropped: more than {LONGEST:,} characters"
    findings += finding_of("endless-line", [f"line {number}" for number in long], done)
    plain = [
        (number, line.split(separator) if separator else [line])
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    cells = [cell for _, row in plain[:LOOKED_AT] for cell in row]
    wrapped = sum(bool(_QUOTED.fullmatch(cell.strip())) for cell in cells)
    if not separator or (separator == "\t" and wrapped < len(cells) / 4):
        return plain
    escape = "\\" if text.count('\\"') > text.count('""') else None
    options: Any = {"delimiter": separator, "escapechar": escape}
    try:
        reader = csv.reader(io.StringIO("\n".join(lines), newline=""), **options)
        rows, begin = [], 1
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append((begin, row))
            begin = reader.line_num + 1
    except csv.Error:
        rows = []
    swallowed = [n for n, row in rows if any(cell.count("\n") > LINES for cell in row)]
    if swallowed or not rows:  # by a quote without an end: each line is a record of its own
        shown = tuple(f"line {n}: {lines[n - 1]}" for n in swallowed[:EXAMPLES])
        done = "a quotation mark without an end: every line was read by itself"
        findings.append(Finding("open-quote", max(1, len(swallowed)), shown, done))
        rows = [(n, next(csv.reader([lines[n - 1]], **options))) for n, _ in plain]
    return rows


# --- The first row ------------------------------------------------------------------------------


def _with_header(rows: Rows, form: str, findings: list[Finding]) -> Table:
    first = [cell.strip().strip("\ufeff") for _, cells in rows[:1] for cell in cells]
    if len(first) < 2 or not _is_header(first, [cells for _, cells in rows[1 : LOOKED_AT + 1]]):
        return Table(rows, [], form, findings)
    return Table(rows[1:], first, form, [*findings, *header_finding(first)])


def header_finding(names: Sequence[str]) -> list[Finding]:
    """Note that the first row is a header."""
    return finding_of("header", [" | ".join(names)], "names the columns, and is no example")


def _is_header(first: list[str], rest: list[list[str]]) -> bool:
    """Tell whether a first row names columns: words that tables use, unlike the cells below."""
    filled = [cell for cell in first if cell]
    columns = [[cells[n].strip() for cells in rest if len(cells) > n] for n in range(len(first))]
    if any(map(_over_numbers, first, columns)):
        return True
    if any(len(cell) > 40 or len(cell.split()) > 3 or cell[-1] in ".?!,;" for cell in filled):
        return False
    if any(map(_over_labels, first, columns)):
        return True
    words = header_words().keys() | _NAMES
    known = [bool(words & set(re.findall(r"[^\W\d_]{2,}", cell.lower()))) for cell in filled]
    codes = [is_language_code(cell) and len(cell.split("-")[0]) == 2 for cell in filled]
    if len(set(filled)) < len(filled) or not filled:
        return False
    if all(one or other for one, other in zip(known, codes, strict=True)) and any(known):
        return True
    sizes = [len(cell) for cells in rest for cell in cells if len(cell) > 1]
    longer = bool(sizes) and sum(sizes) / len(sizes) > 2 * max(map(len, filled))
    return sum(codes) == len(filled) or (longer and (any(known) or sum(codes) > 1)) or not rest


def _over_labels(name: str, below: list[str]) -> bool:
    """Tell whether a column has a name on top that is not among the few labels below it."""
    return 1 < len(set(below)) <= len(below) / REPEATS and name not in below


def _over_numbers(name: str, below: list[str]) -> bool:
    """Tell whether a column has a name on top, and numbers or dates alone below it."""
    cells = [cell for cell in below if cell]
    if len(cells) < ROWS_OF_NUMBERS or not any(map(str.isalpha, name)):
        return False
    numbers = (any(map(str.isdigit, cell)) and not any(map(str.isalpha, cell)) for cell in cells)
    return not any(map(str.isdigit, name)) and all(numbers)


# --- Tables with names --------------------------------------------------------------------------


def _objects(rows: Iterator[Mapping[str, Any]], form: str, findings: list[Finding]) -> Table:
    nested = ((row, row.get("translation")) for row in rows)
    flat = (inner if isinstance(inner, Mapping) else row for row, inner in nested)
    cells = [{str(key): _cell(value) for key, value in row.items()} for row in flat]
    names = dict.fromkeys(name for row in cells for name in row)
    table = [(n, [row.get(name, "") for name in names]) for n, row in enumerate(cells, 1)]
    return Table(table, list(names), form, findings)


def _cell(value: object) -> str:
    """Return a value as text: of a list a line for each, nothing of a table."""
    if isinstance(value, list | tuple):
        return "\n".join(map(_cell, value))
    return str(value) if isinstance(value, str | int | float) else ""


def _json(text: str, path: Path, findings: list[Finding]) -> Iterator[Mapping[str, Any]]:
    try:
        whole = loads(text)
    except ValueError:
        whole = None
    if isinstance(whole, dict):
        lists = [each for each in whole.values() if isinstance(each, list) and any(map(_row, each))]
        texts = all(isinstance(each, str) for each in whole.values())
        if len(lists) == 1:  # {"version": 1, "data": [...]}
            whole = lists[0]
        elif texts and sum(" " in key for key in whole) > len(whole) / 2:
            whole = list(whole.items())  # {"a sentence": "its translation"}
    if isinstance(whole, list) and any(map(_row, whole)):
        yield from filter(None, map(_row, whole))
        return
    if isinstance(whole, dict) and (path.suffix == ".json" or "\n" in text.strip()):
        raise UsageError(
            f"{path} is one JSON object ({', '.join(map(str, whole))[:80]}): give a list of "
            "objects, or one object a line, each with the texts of a pair. COCO's captions need a "
            "recipe of your own (docs/images-and-text.md)."
        )
    wrong = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            row = _row(loads(line)) if line.strip() else None
        except ValueError:
            row = {}
        if row:
            yield row
        elif row is not None:
            wrong.append(f"line {number}: {line.strip()}")
    findings += finding_of("invalid-record", wrong, "dropped: not valid JSON")


def _row(value: object) -> Mapping[str, Any]:
    """Return an object, a text, or the texts of a list by their numbers; of others nothing."""
    value = [value] if isinstance(value, str) else value
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return {f"column {number}": each for number, each in enumerate(value, 1)}
    return value if isinstance(value, dict) else {}


def _sheet(content: bytes, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of the first sheet of a workbook."""
    parts = unpack(XLSX, content, name)

    def texts(node: ElementTree.Element) -> str:
        return "".join(each.text or "" for each in node.iterfind(".//{*}t"))

    try:
        strings = ElementTree.fromstring(parts.get("xl/sharedStrings.xml", "<sst/>"))
        shared = [texts(node) for node in strings]
        first = min(part for part in parts if part.startswith("xl/worksheets/"))
        rows = ElementTree.fromstring(parts[first]).findall(".//{*}row")
    except (ElementTree.ParseError, ValueError) as error:
        raise DataError(f"{name}: no sheet can be read ({error}). Save it as .csv.") from None
    for number, row in enumerate(rows, 1):
        cells: dict[int, str] = {}
        for cell in row:
            letters = re.match("[A-Z]+", cell.get("r", "A"))
            column = 0
            for letter in letters[0] if letters else "A":
                column = column * 26 + ord(letter) - 64
            value, kind = cell.findtext("{*}v", ""), cell.get("t")
            if kind == "s" and value.isdecimal() and int(value) < len(shared):
                value = shared[int(value)]
            cells[column] = texts(cell) if kind == "inlineStr" else value
        if any(text.strip() for text in cells.values()):
            yield number, [cells.get(n, "") for n in range(1, max(cells) + 1)]
