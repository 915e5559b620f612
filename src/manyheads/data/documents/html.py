"""HTML: text by paragraph, and the attributes that people read; all else stays byte for byte.

The standard library's parser tells where each tag, text and comment begins; the page is cut there.
"""

import re
from collections.abc import Iterator
from functools import partial
from html import escape, unescape
from html.parser import HTMLParser
from typing import NamedTuple

from manyheads.data.documents.segments import Line, split_spans
from manyheads.data.documents.spans import Markup, Part, Span, one_space, paragraphs


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A paragraph ends where one of these begins or ends.
_BLOCKS = _words("""
    address article aside base blockquote body br button canvas caption center col colgroup dd
    details dialog div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5
    h6 head header hgroup hr html iframe input legend li link main menu meta nav noscript ol
    optgroup option p pre script search section select style summary table tbody td template
    textarea tfoot th thead title tr ul video
""")
# What these enclose is not translated.
_HIDDEN = _words("code kbd math pre samp script style svg template textarea tt var")
_VOID = _words("area base br col embed hr img input link meta param source track wbr")
_READ = frozenset({"alt", "aria-label", "placeholder", "title"})  # attributes
_ATTRIBUTE = re.compile(r"([^\s\"'>/=]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|[^\s>]+))?")
_REFERENCE = re.compile(r"(&(?:#\w{1,8}|[A-Za-z]\w{0,31});?)")
_UNICODE = re.compile(r"(?:charset|encoding)\s*+=\s*+[\"']?\s*+utf-?8", re.IGNORECASE)


class _Piece(NamedTuple):
    begin: int
    kind: str  # start, end, text, reference or other
    name: str = ""
    protected: bool = False  # by the author, with translate="no"
    length: int = 0  # of a text


class _Parser(HTMLParser):
    """Notes where each piece of a page begins."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=False)
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.pieces = [_Piece(0, "other")]
        # Without `close`, which tries again and again at each tag that has no end.
        self.feed(text)
        begin = self._at()
        self.pieces.append(_Piece(begin, "text" if text[begin : begin + 1] == "&" else "other"))

    def _at(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def _note(self, kind: str, name: str = "", protected: bool = False, length: int = 0) -> None:
        self.pieces.append(_Piece(self._at(), kind, name, protected, length))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        protected = (found.get("translate") or "").lower() == "no"
        protected |= "notranslate" in (found.get("class") or "").split()
        self._note("start", tag, protected)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note("empty", tag)

    def handle_endtag(self, tag: str) -> None:
        self._note("end", tag)

    def handle_data(self, data: str) -> None:
        self._note("text", length=len(data))

    def handle_entityref(self, name: str) -> None:
        self._note("reference")

    def handle_comment(self, data: str) -> None:
        self._note("other")

    def handle_decl(self, decl: str) -> None:
        self._note("other")

    handle_charref = handle_entityref
    handle_pi = unknown_decl = handle_comment

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """Read <![...]> as a comment; the library raises an error if it does not know it."""
        end = self.rawdata.find(">", i)
        if end >= 0:
            self._note("other")
        return end + 1 or -1


def split_html(text: str, language: str = "", *, part_of: bool = False) -> list[Line]:
    """Split a page into paragraphs, and each paragraph into parts.

    Code, scripts, styles, comments and what has translate="no" are copied. Words of a page in ASCII
    that does not say that it is UTF-8 are written with references, which any encoding can hold;
    those of a part of a page (`part_of`) never are.
    """
    ascii_only = text.isascii() and not _UNICODE.search(text) and not part_of
    write = partial(_escape, quote=False, ascii_only=ascii_only)
    return [split_spans(spans, language, escape=write) for spans in paragraphs(html_pieces(text))]


def split_attributes(text: str, language: str = "", *, part_of: bool = False) -> list[Line]:
    """Split a page into the values of attributes that people read, and all between them."""
    ascii_only = text.isascii() and not _UNICODE.search(text) and not part_of
    write = partial(_escape, quote=True, ascii_only=ascii_only)
    lines: list[Line] = []
    between = ""
    for piece in html_pieces(text, attributes=True):
        if isinstance(piece, Span) or piece.role not in ("open", "point"):
            between += piece.source
            continue
        position = 0
        for match in _ATTRIBUTE.finditer(piece.source, 1 + len(piece.name)):
            group = 2 if match[2] else 3
            if match[1].lower() in _READ and match[group]:
                lines.append([Part(between + piece.source[position : match.start(group)], True)])
                value = paragraphs(_decoded(match[group]))
                lines += [split_spans(spans, language, escape=write) for spans in value]
                between, position = "", match.end(group)
        between += piece.source[position:]
    return [*lines, [Part(between, True)]]


def html_pieces(text: str, *, attributes: bool = False) -> Iterator[Span | Markup]:
    """Cut a page into text and markup."""
    found = _Parser(text).pieces
    ends = [piece.begin for piece in found[1:]] + [len(text)]
    for piece, end in zip(found, ends, strict=True):
        source, breaks = text[piece.begin : end], piece.name in _BLOCKS
        if piece.kind == "text":
            length = piece.length or len(source)
            yield from one_space(source[:length])
            if source[length:]:
                yield Markup(source[length:], "point")
        elif piece.kind == "reference":
            yield from _decoded(source)
        elif piece.kind in ("start", "empty"):
            alone = piece.kind == "empty" or piece.name in _VOID
            hides = piece.protected or (piece.name in _HIDDEN and not attributes)
            yield Markup(source, "point" if alone else "open", piece.name, hides, breaks)
        elif piece.kind == "end":
            yield Markup(source, "close", piece.name, breaks=breaks)
        elif source:
            yield Markup(source, "point")


def _decoded(text: str) -> Iterator[Span]:
    for number, piece in enumerate(_REFERENCE.split(text)):
        if number % 2:
            yield Span(piece, unescape(piece).replace("\xad", ""))
        else:
            yield from one_space(piece)


def _escape(text: str, *, quote: bool, ascii_only: bool) -> str:
    text = escape(text, quote=quote)
    return text.encode("ascii", "xmlcharrefreplace").decode() if ascii_only else text
