"""DOCX and XLSX: the texts in their XML; formats, images, formulas and charts stay byte for byte.

Both are zip archives of XML. Only the parts with text are changed, and of those only the texts:
what stands between two texts of a paragraph is markup, so each word keeps the format of its run.
"""

import re
import shutil
import struct
import zlib
from array import array
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape, unescape
from io import BytesIO
from itertools import chain, islice
from lzma import LZMAError
from sys import intern
from typing import NamedTuple
from xml.parsers.expat import ExpatError, ParserCreate, XMLParserType
from zipfile import BadZipFile, ZipFile

from manyheads.data.documents.segments import Line, split_spans
from manyheads.data.documents.spans import Markup, Part, Span, one_space, paragraphs
from manyheads.errors import DataError

_TEXT = re.compile(r"<((?:\w+:)?t)>")
_UNSEEN = re.compile(r"<(?:\w+:)?(?:lang|noProof)\b[^<>]*/>")  # properties without effect
_REFERENCE_OR_LINE = re.compile(r"(&[^;]{1,32};|\n)")
_BETWEEN_WORDS = re.compile(r"(?<=>)(\s++)(?=<)|<[^<>]*+>")  # line ends and tags
_TABLE = r"xl/tables/[^/]*\.xml"
_DEEPEST = 500  # elements in each other
_RUN = frozenset({"r", "t", "rPr", "proofErr"})


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The most that an archive may unpack to.

    Nobody writes a document with more than the defaults; a malicious archive may hold it.
    """

    part: int = 64 << 20  # bytes of one part with texts; each costs many times as much memory
    texts: int = 1 << 30  # bytes of all parts with texts, or with headers of tables
    all: int = 1 << 30  # bytes of all parts
    parts: int = 65_535


UNPACKED = Unpacked()


@dataclass(frozen=True, slots=True)
class Package:
    """A kind of archive: its parts that hold text, and the elements in them."""

    parts: str  # pattern of names
    main: str  # the part that each such archive has
    namespace: str  # characters in the name of the namespace
    paragraphs: frozenset[str]
    breaks: frozenset[str] = frozenset()  # empty elements that divide a paragraph
    hidden: frozenset[str] = frozenset()
    lines: bool = False  # whether a line end divides a paragraph


DOCX = Package(
    r"word/(document|header\d*|footer\d*|footnotes|endnotes)\.xml",
    "word/document.xml",
    "wordprocessingml",
    frozenset({"p"}),
    breaks=frozenset({"br", "cr", "tab"}),
)
XLSX = Package(
    r"xl/(sharedStrings|worksheets/[^/]*)\.xml",
    "xl/workbook.xml",
    "spreadsheetml",
    frozenset({"si", "is"}),
    hidden=frozenset({"rPh"}),
    lines=True,
)


def unpack(kind: Package, content: bytes, name: str, most: Unpacked = UNPACKED) -> dict[str, str]:
    """Return the parts of an archive that hold text.

    Raises:
        DataError: it cannot be read, is of another kind, or is larger than any document.
    """
    with _reading(name), ZipFile(BytesIO(content)) as archive:
        infos = archive.infolist()
        read = [info for info in infos if re.fullmatch(f"{kind.parts}|{_TABLE}", info.filename)]
        largest = max((info.file_size for info in read), default=0)
        texts, every = (sum(info.file_size for info in each) for each in (read, infos))
        if largest > most.part or texts > most.texts or every > most.all or len(infos) > most.parts:
            raise DataError(
                f"{name} unpacks to more than {min(most.part, most.texts) >> 20} MB in a part with "
                f"text, {most.all >> 20} MB in all, or {most.parts:,} parts. Divide the document."
            )
        if kind.main not in archive.namelist():
            raise DataError(f"{name} has no {kind.main}: it is a document of another kind.")
        found = [info for info in read if re.fullmatch(kind.parts, info.filename)]
        return {info.filename: archive.read(info).decode("utf-8") for info in found}


def pack(content: bytes, name: str, changed: Mapping[str, str]) -> bytes:
    """Return an archive with some parts changed; the content of all others is the same."""
    if not changed:
        return content
    packed = BytesIO()
    with _reading(name), ZipFile(BytesIO(content)) as old, ZipFile(packed, "w") as new:
        for info in old.infolist():
            if info.filename in changed:
                # Without this, spaces at the ends of a text are not shown.
                text = _TEXT.sub(r'<\1 xml:space="preserve">', changed[info.filename])
                new.writestr(info, text.encode())
            else:
                with old.open(info) as source, new.open(info, "w") as target:
                    shutil.copyfileobj(source, target)
    return packed.getvalue()


def table_headers(content: bytes, name: str) -> frozenset[str]:
    """Return the names of the columns of all tables: a workbook whose cells differ is damaged.

    `unpack` has refused what is too large.
    """
    names: set[str] = set()

    def note(tag: str, attributes: Mapping[str, str]) -> None:
        if tag.rpartition(" ")[2] == "tableColumn" and "name" in attributes:
            names.add(attributes["name"])

    with _reading(name), ZipFile(BytesIO(content)) as archive:
        for info in archive.infolist():
            if re.fullmatch(_TABLE, info.filename):
                parser = ParserCreate("utf-8", " ")
                parser.StartElementHandler = note
                _parse(parser, archive.read(info))
    return frozenset(names)


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError:
        raise DataError(f"{name} has texts that are not UTF-8. Save it again.") from None
    except (
        *(BadZipFile, zlib.error, LZMAError, struct.error),
        *(EOFError, RuntimeError, ValueError, OSError, LookupError),
    ) as error:
        raise DataError(
            f"{name} cannot be unpacked: {error}. Open it in its program and save it again, "
            "without a password."
        ) from error


def split_xml(text: str, language: str, *, package: Package, keep: Collection[str]) -> list[Line]:
    """Split a part of an archive into paragraphs, and each paragraph into parts.

    Paragraphs whose whole text is in `keep` are copied.

    Raises:
        DataError: it is not XML, or has a document type definition, which these formats forbid.
    """
    lines: list[Line] = []
    for spans in paragraphs(_pieces(text, package)):
        if "".join(span.text for span in spans) in keep:
            lines.append([Part("".join(span.source for span in spans), True)])
        else:
            lines.append(split_spans(spans, language, escape=_escape))
    return lines


def shown(source: str) -> str:
    """Return the words of a part of XML."""
    bare = _BETWEEN_WORDS.sub(lambda found: "" if "\n" in (found[1] or "\n") else found[0], source)
    return unescape(bare)


class _Piece(NamedTuple):
    """A tag, or characters, of an XML text."""

    source: str
    kind: str  # start, end, text or other
    name: str = ""  # without its namespace; empty if it is of another


class _Format(NamedTuple):
    """What makes two texts of a paragraph look alike."""

    around: tuple[str, ...]  # open elements: links, insertions
    run: str  # properties


def _pieces(text: str, package: Package) -> Iterator[Span | Markup]:
    """Cut XML into texts, and what is between them by what it does to the format."""
    between, names = "", set[str]()  # since the last text
    stack: list[_Piece] = []  # open elements
    run, begin = "", 0
    first = last = _Format((), "")
    opened = False
    for piece in _read(text, package.namespace):
        inside = {each.name for each in stack[-2:]} if stack else set()
        if piece.kind == "text" and stack and stack[-1].name == "t" and not inside & package.hidden:
            current = _Format(tuple(e.source for e in stack if e.name not in _RUN), run)
            if names & (package.paragraphs | package.breaks):
                yield Markup(between, "point", breaks=True)
                first, opened = current, False
            elif between and names <= _RUN and current == last:
                yield Span(between, "")  # the run was divided where nothing changes
            elif between:
                back = opened and current == first
                yield Markup(between, "close" if back else "point" if opened else "open", "run")
                opened = not back
            between, names, last = "", set(), current
            yield from _characters(piece.source, package)
            continue
        if piece.kind == "start":
            if piece.name == "r":
                run = ""
            elif piece.name == "rPr" and "rPr" not in inside:
                begin = len(between)
            stack.append(piece)
            if len(stack) > _DEEPEST:
                raise DataError(f"the XML has more than {_DEEPEST} elements in each other.")
        between += piece.source
        if piece.kind == "end":
            ended = stack.pop()
            if ended.name == "rPr" and stack[-1].name == "r":
                run = _UNSEEN.sub("", between[begin:])
        if piece.kind != "text" or piece.source.strip():
            names.add(piece.name)
    if between:
        yield Markup(between, "point", breaks=True)


def _characters(source: str, package: Package) -> Iterator[Span | Markup]:
    for number, piece in enumerate(_REFERENCE_OR_LINE.split(source)):
        if number % 2 == 0:
            yield from one_space(piece)
        elif piece == "\n" and package.lines:
            yield Markup(piece, "point", breaks=True)
        else:
            yield Span(piece, " " if piece == "\n" else unescape(piece))


def _read(text: str, namespace: str) -> Iterator[_Piece]:
    """Cut XML at its tags; `expat` tells where they begin."""
    content = text.encode()
    begins, kinds, names = array("q"), list[str](), list[str]()  # in tuples 5 times as large
    parser = ParserCreate("utf-8", " ")
    literal = False

    def note(kind: str, name: str = "") -> None:
        space, _, local = name.rpartition(" ")
        begins.append(parser.CurrentByteIndex)
        kinds.append(kind)
        names.append(intern(local) if namespace in space else "")

    def cdata(*, begins: bool) -> None:
        nonlocal literal
        literal = begins
        note("other")

    parser.StartElementHandler = lambda name, _: note("start", name)
    parser.EndElementHandler = lambda name: note("end", name)
    parser.CharacterDataHandler = lambda _: note("other" if literal else "text")
    parser.CommentHandler = lambda _: note("other")
    parser.ProcessingInstructionHandler = lambda *_: note("other")
    parser.XmlDeclHandler = lambda *_: note("other")
    parser.StartCdataSectionHandler = lambda: cdata(begins=True)
    parser.EndCdataSectionHandler = lambda: cdata(begins=False)
    _parse(parser, content)
    yield _Piece(content[: begins[0]].decode(), "other")
    ends = chain(islice(begins, 1, None), (len(content),))
    for begin, end, kind, name in zip(begins, ends, kinds, names, strict=True):
        yield _Piece(content[begin:end].decode(), kind, name)


def _parse(parser: XMLParserType, content: bytes) -> None:
    def refuse(*_: object) -> None:
        raise DataError("the XML has a document type definition, which no such document has.")

    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except ExpatError as error:
        raise DataError(f"the XML of the document is damaged: {error}.") from None


def _escape(text: str) -> str:
    return escape(text, quote=False)
