"""Text with markup: what a translator reads, and the characters of the document that it stands for.

Every document format gives its paragraphs as spans. The sources of all spans, joined, are the
document; their texts, joined, are what is translated. Markup is read as a tag, like the inline
elements of XLIFF: <g1> and </g1> enclose words, <x2/> is a position, and {x3} stands for characters
that are used like a word, such as code. So one method (`markup_transfer`) serves all formats.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from manyheads.data.documents.placeholders import Item, cut, find

_WHITE = re.compile(r"[^\S\xa0\u2009\u202f\u3000]+")


class Span(NamedTuple):
    """Characters of a document, and what is read for them."""

    source: str
    text: str
    markup: str = ""  # what is written for the text, a tag


Role = Literal["open", "close", "point", "opaque"]


class Markup(NamedTuple):
    """Markup among the spans of a text, before it is numbered."""

    source: str
    role: Role
    name: str = ""  # a closing tag closes the last open one of this name
    hides: bool = False  # an opening tag: what it encloses is not translated
    breaks: bool = False  # a paragraph ends here
    written: str = ""  # with a translation, if not the source


class Part(NamedTuple):
    """Some characters of a document."""

    text: str
    kept: bool  # copied, not translated
    spans: Sequence[Span] = ()  # what is translated, if it is not the text itself
    escape: Callable[[str], str] = str  # writes translated text in the document's format

    @property
    def sentence(self) -> str:
        """What is translated."""
        return "".join(span.text for span in self.spans) if self.spans else self.text

    @property
    def rewritten(self) -> str:
        """What is copied into a paragraph of which something else was translated."""
        return "".join(span.markup or span.source for span in self.spans) or self.text

    def write(self, translation: str) -> str:
        """Write a translation with the document's own markup."""
        markup = {span.text: span.markup for span in self.spans if span.markup}
        items = [item for item in find(translation) if item.text in markup]
        return "".join(
            markup[piece.text] if isinstance(piece, Item) else self.escape(piece)
            for piece in cut(translation, items)
        )


def plain(text: str) -> Span:
    """Return a span of text that is read as it is."""
    return Span(text, text)


def one_space(text: str) -> Iterator[Span]:
    """Read white space as one space, and all else as it is."""
    position = 0
    for match in _WHITE.finditer(text):
        if match.group() != " ":
            if position < match.start():
                yield plain(text[position : match.start()])
            yield Span(match.group(), " ")
            position = match.end()
    if position < len(text):
        yield plain(text[position:])


def paragraphs(pieces: Iterable[Span | Markup]) -> Iterator[list[Span]]:
    """Divide a text with markup into paragraphs, and into what is between them, read as nothing."""
    inside: list[Span | Markup] = []
    between = ""
    for piece in _without_hidden(pieces):
        if isinstance(piece, Markup) and piece.breaks:
            if inside:
                yield _number(inside)
                inside = []
            between += piece.source
        else:
            if between:
                yield [Span(between, "")]
                between = ""
            inside.append(piece)
    if inside:
        yield _number(inside)
    if between:
        yield [Span(between, "")]


def _number(pieces: Sequence[Span | Markup]) -> list[Span]:
    """Give each markup of a paragraph its tag."""
    text = "".join(piece.text for piece in pieces if isinstance(piece, Span))
    taken = re.findall(r"(?:</?g|<x|\{x)(_*+)\d", text)  # the text itself has such tags
    mark = "_" * (1 + max(map(len, taken))) if taken else ""
    opened: list[tuple[int, str]] = []
    spans: list[Span] = []
    for number, piece in enumerate(pieces, 1):
        if isinstance(piece, Span):
            spans.append(piece)
            continue
        tag = f"{{x{mark}{number}}}" if piece.role == "opaque" else f"<x{mark}{number}/>"
        if piece.role == "open":
            tag = f"<g{mark}{number}>"
            opened.append((number, piece.name))
        elif piece.role == "close" and opened and opened[-1][1] == piece.name:
            tag = f"</g{mark}{opened.pop()[0]}>"
        spans.append(Span(piece.source, tag, piece.written or piece.source))
    return spans


def _without_hidden(pieces: Iterable[Span | Markup]) -> Iterator[Span | Markup]:
    """Make one opaque markup of a tag that hides and of what it encloses."""
    hidden: list[str] = []
    opening, depth = Markup("", "open"), 0
    for piece in pieces:
        if not hidden and isinstance(piece, Markup) and piece.hides:
            opening, depth = piece, 0
        elif not hidden:
            yield piece
            continue
        hidden.append(piece.source)
        if isinstance(piece, Markup) and piece.name == opening.name:
            depth += {"open": 1, "close": -1}.get(piece.role, 0)
        if depth == 0:
            yield opening._replace(source="".join(hidden), role="opaque", written="")
            hidden = []
    if hidden:
        yield opening._replace(source="".join(hidden), role="opaque", written="")


def cut_spans(spans: Iterable[Span], places: Iterable[int]) -> list[list[Span]]:
    """Cut spans at ascending places of their joined text; one more list than places.

    Only spans that are read as they are can be divided; a place inside another is moved to its end.
    """
    pieces: list[list[Span]] = [[]]
    left = sorted(places, reverse=True)
    end = 0
    for span in spans:
        begin, end = end, end + len(span.text)
        while left and left[-1] < end:
            if left[-1] > begin:
                if span.source != span.text:
                    break
                pieces[-1].append(plain(span.text[: left[-1] - begin]))
                span = plain(span.text[left[-1] - begin :])
                begin = left[-1]
            pieces.append([])
            left.pop()
        pieces[-1].append(span)
    return [*pieces, *([] for _ in left)]
