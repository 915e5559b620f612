"""Markdown: text by paragraph; code, math, addresses and front matter stay byte for byte.

markdown-it reads the document. It tells the lines of each paragraph, but not where in a line each
link or emphasis begins; so its rules are wrapped, and what each of them consumes is noted.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin

from manyheads.data.documents.html import html_pieces, split_html
from manyheads.data.documents.segments import Line, joint, split_spans
from manyheads.data.documents.spans import Markup, Part, Role, Span, paragraphs, plain

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
# YAML or TOML, at the beginning of a file.
_FRONT_MATTER = re.compile(
    r"\A\ufeff?(---|\+\+\+)[ \t]*\r?\n(?=[ \t]*(?:[\w\"'.-]+[ \t]*[:=]|[#{\[]|\1))"
    r"(?:.*\r?\n)*?(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)"
)
_LIST_NUMBER = re.compile(r"\A(\d{1,9})([.)])(?=\s|\Z)")
_LINE_END = re.compile(r"\r\n?")
_SPECIAL = frozenset("\\`*_[]<>$~|#")
# Lines of a paragraph that are signs of other dialects: "[!NOTE]", ":::", "!!! note".
_BOX = re.compile(r"^(?:\[![A-Z]+\][ \t]*$|:{3,}.*|!{3} .*)", re.MULTILINE)

Places = list[tuple[int, int]]  # of each character, where it begins and ends in the document


class _Found(NamedTuple):
    """What a rule consumed of a paragraph."""

    begin: int
    end: int
    rule: str
    token: Token  # of emphasis: text, until the end of the paragraph decides
    label: str = ""


def split_markdown(text: str, language: str = "") -> list[Line]:
    """Split a document into paragraphs, and each paragraph into parts."""
    front = _FRONT_MATTER.match(text)
    position = front.end() if front else text.startswith("\ufeff")
    lines: list[Line] = [[Part(text[:position], True)]] if position else []
    for block in _blocks(text, position):
        source = "".join(piece.source for piece in block.pieces)
        lines.append([Part(text[position : block.begin], True)])
        if block.html:
            lines += split_html(source, language, part_of=True)
        for spans in () if block.html else paragraphs(block.pieces):
            lines.append(split_spans(spans, language, escape=block.escape))
        position = block.begin + len(source)
    return [*lines, [Part(text[position:], True)]]


class _Block(NamedTuple):
    """A paragraph, a heading or a cell; or lines of HTML."""

    begin: int
    pieces: Sequence[Span | Markup]
    escape: Callable[[str], str] = str
    html: bool = False


def _blocks(text: str, begin: int) -> Iterator[_Block]:
    """Find what is translated in a document, from left to right."""
    lines = [(match.start(), match.group()) for match in _LINE.finditer(text, begin)]
    env: dict[str, Any] = {}
    position = begin
    cell = False
    for token in _parser().parse(text[begin:], env):
        if token.type in ("th_open", "td_open", "th_close", "td_close"):
            cell = token.nesting == 1
        if token.map is None or not token.content:
            continue
        own = lines[slice(*token.map)]
        if token.type == "html_block":
            source = "".join(line for _, line in own)
            if _LINE_END.sub("\n", source).startswith(token.content.rstrip("\n")):  # no quotation
                position = own[0][0] + len(source)
                yield _Block(own[0][0], [Span(source, "")], html=True)
        elif token.type == "inline" and (
            places := _places(token.content, own, position, cell=cell)
        ):
            position = places[-1][1]
            pieces = list(_pieces(text, token.content, places, env))
            special = {s.text for s in pieces if isinstance(s, Span) and s.text in _SPECIAL}
            special |= {"|"} if any("\\|" in piece.source for piece in pieces) else set()
            yield _Block(places[0][0], pieces, partial(_escape, special=frozenset(special)))


def _places(
    content: str, lines: Sequence[tuple[int, str]], position: int, *, cell: bool
) -> Places | None:
    """Find where in the document each character of a paragraph, a heading or a cell stands.

    The content has lost what containers put before its lines, such as "> ", and in tables the
    backslash before a bar.
    """
    places: Places = []
    before, after = (r"(?<![^|\s>])", r"\s*(?:\||\Z)") if cell else ("", r"(?:[ \t]+#+)?\s*\Z")
    for (begin, line), part in zip(lines, content.split("\n"), strict=False):
        text = part.strip()
        pattern = re.escape(text).replace(r"\|", r"\\?\|").replace("\ufffd", "[\0\ufffd]")
        match = re.compile(f"{before}({pattern}){after}").search(line, max(0, position - begin))
        if match is None:
            return None
        at = begin + match.start(1)
        if places:
            places.append((places[-1][1], at))  # the line end
        places += [(at, at)] * part.index(text)
        for character in part[part.index(text) :]:
            width = 2 if character == "|" and line[at - begin] == "\\" else 1
            places.append((at, at + width))
            at += width
    return places


def _pieces(
    text: str, content: str, places: Places, env: dict[str, Any]
) -> Iterator[Span | Markup]:

    def words(begin: int, end: int) -> Iterator[Span]:
        for place in range(begin, end):  # the document may have a backslash more, or a zero byte
            source = text[slice(*places[place])]
            if source != content[place]:
                yield from [plain(content[begin:place])] if begin < place else []
                yield Span(source, content[place])
                begin = place + 1
        if begin < end:
            yield plain(content[begin:end])

    box = ("box", Token("", "", 0))
    env["found"] = [_Found(*match.span(), *box) for match in _BOX.finditer(content)]
    _parser().inline.parse(content, _parser(), env, [])
    position = 0
    for each in _whole(sorted(env["found"], key=lambda each: (each.begin, -each.end))):
        if each.begin < position:
            continue
        yield from words(position, each.begin)
        position = each.end
        source = text[places[each.begin][0] : places[each.end - 1][1]]
        yield from _piece(each, source, content)
    yield from words(position, len(content))


def _whole(found: Sequence[_Found]) -> list[_Found]:
    """Join the two signs of strong emphasis: the outer one is a text without content."""
    joined: list[_Found] = []
    opening: int | None = None
    for each in found:
        last = joined[-1] if joined else each
        if each.rule != "emphasis" or each.token.type != "text" or each.token.content:
            joined.append(each if opening is None else each._replace(begin=opening))
            opening = None
        elif last.token.type == "strong_close" and last.end == each.begin == last.begin + 1:
            joined[-1] = last._replace(end=each.end)
        else:
            opening = each.begin
    return joined


def _piece(found: _Found, source: str, content: str) -> Iterator[Span | Markup]:
    kind = found.token.type
    if found.rule in ("strikethrough", "emphasis"):
        if kind == "text":
            yield Span(source, source)
        else:
            role: Role = "open" if kind.endswith("open") else "close"
            yield Markup(source, role, kind.rpartition("_")[0])
    elif found.rule in ("entity", "escape", "newline"):
        before, after = content[: found.begin][-1:], content[found.end :][:1]
        if kind == "hardbreak":
            yield Markup(source, "point", breaks=True)
        elif kind == "softbreak":
            yield Span(source, "" if before.isspace() else joint(before, after))
        else:
            yield Span(source, found.token.content)
    elif found.rule == "html_inline":
        yield from html_pieces(source)
    elif found.rule == "link_open" or found.rule == "link_close":
        written = f"][{found.label}]" if found.label else ""
        role = "open" if found.rule == "link_open" else "close"
        yield Markup(source, role, "link", written=written)
    else:
        yield Markup(source, "opaque", breaks=found.rule == "box")


def _escape(text: str, special: frozenset[str]) -> str:
    """Escape what is escaped in the source too, and what would begin a list."""
    text = _LIST_NUMBER.sub(r"\1\\\2", text)
    return "".join(f"\\{sign}" if sign in special else sign for sign in text)


@cache
def _parser() -> MarkdownIt:
    """Return a parser whose rules note what they consume."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    dollarmath_plugin(parser, allow_space=False, allow_digits=False, double_inline=True)
    footnote_plugin(parser, inline=False, move_to_end=False)
    parser.disable(["inline", "text_join", "fragments_join"])  # paragraphs are read one by one
    rules = parser.inline.ruler
    for name, rule in zip(rules.get_active_rules(), rules.getRules(""), strict=True):
        rules.at(name, _noting(name, rule))
    return parser


def _noting(name: str, rule: Callable[[StateInline, bool], bool]) -> Any:
    def noting(state: StateInline, silent: bool) -> bool:
        begin, count, found = state.pos, len(state.tokens), state.env["found"]
        state.env["found"] = inside = [] if name == "image" else found
        done = rule(state, silent)
        state.env["found"] = found
        if not done or silent or len(state.tokens) == count:
            return done
        token = state.tokens[-1]
        if name in ("strikethrough", "emphasis"):  # one token for each delimiter
            end = state.pos
            for each in reversed(state.tokens[count:]):
                if end > begin:
                    found.append(_Found(end - len(each.content), end, name, each))
                    end -= len(each.content)
        elif name == "link" or (name == "image" and not inside):
            text = begin + (name == "image")
            end = state.md.helpers.parseLinkLabel(state, text, name == "link")
            found.append(_Found(begin, text + 1, "link_open", token))
            found.append(_Found(end, state.pos, "link_close", token))
            if state.src[end : state.pos] in ("]", "][]"):  # the text is the name of its address
                found[-1] = found[-1]._replace(label=state.src[text + 1 : end])
        else:
            found.append(_Found(begin, state.pos, name, token))
        return done

    return noting
