"""Markup transfer: remove tags and URLs before translation, reinsert them by word alignment.

A small model has not seen tags or URLs, and they damage the translation of the rest of a sentence.
So the sentence is translated without them, and they are reinserted between the words of the
translation, at the positions that agree best with the alignment of source and target.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from manyheads.data.documents.placeholders import Item

_STOPS = set(".,;:!?)]}。、，！？」』）")
_BEGINNINGS = set("([{「『（¿¡")
_INSEPARABLE = re.compile(r"[\w'\u2019-]*\w")  # "{user}'s"
# Where a span may stand: before words, punctuation, and characters without spaces.
_POINTS = re.compile(r"[^\W\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff]+|\w|[^\w\s]+\Z|[^\w\s]+")
_BRACKETS = {("(", ")"), ("[", "]"), ('"', '"'), ("'", "'"), ("\u201c", "\u201d")}


class Link(NamedTuple):
    """Characters [begin, end) of a translation, and the character of the source they come from."""

    begin: int
    end: int
    source: int


@dataclass(frozen=True, slots=True)
class MarkupSpan:
    """Removed text at one position: one item, or several without a word between them.

    `depth` counts the tags that are open after it. `left` and `right` are the adjacent characters,
    or empty.
    """

    text: str
    position: int  # in the source without the removed spans
    depth: int
    left: str
    right: str


def extract_markup(text: str, items: Sequence[Item]) -> tuple[str, list[MarkupSpan]]:
    """Remove items from a text; return the rest, with single spaces, and the removed spans."""
    spans: list[MarkupSpan] = []
    rest, position = "", 0
    opened: list[str] = []
    for begin, end in _spans(text, items):
        for item in items:
            if begin <= item.begin < end and item.kind == "tag":
                _update_open_tags(opened, item.text)
        rest += text[position:begin]
        left, right = rest[-1:].strip(), text[end : end + 1].strip()
        rest_end = len(rest.rstrip())
        spans.append(MarkupSpan(text[begin:end], rest_end, len(opened), left, right))
        position = end
        # Remove one of the two spaces around the span, and the space before a full stop.
        if not left and not (right and right.isalnum()):
            rest = rest[:rest_end]
    return rest + text[position:], spans


def reinsert(
    source: str, translation: str, spans: Sequence[MarkupSpan], links: Sequence[Link]
) -> str:
    """Reinsert the spans of a source into its translation.

    Spans keep their order and divide a text into intervals. Positions are chosen so that as many
    words as possible are in the same interval as the source character they are aligned to, and
    tags enclose no more words than needed.
    """
    if not spans:
        return translation
    words = [match.start() for match in _POINTS.finditer(translation)]
    costs = [[0.0] * (len(spans) + 1) for _ in words]
    for link in links:
        word = max((n for n, start in enumerate(words) if start <= link.begin), default=0)
        aligned = sum(span.position <= link.source for span in spans)
        for interval in range(len(spans) + 1):
            inside = spans[interval - 1].depth if interval else 0
            costs[word][interval] += (interval != aligned) + 0.01 * inside
    if words and translation[words[-1]] in _STOPS and source.rstrip()[-1:] in _STOPS:
        end = sum(span.position < len(source.rstrip()) for span in spans)
        costs[-1] = [5.0 * (interval != end) for interval in range(len(spans) + 1)]
    # A pair of tags that encloses text must not enclose nothing in the translation.
    empty = [
        2.0 if span.depth and spans[n + 1].position > span.position + 1 else 0.0
        for n, span in enumerate(spans[:-1])
    ]
    intervals = _min_cost_intervals(costs, [0.0, *empty, 0.0])
    result, position = "", 0
    for n, span in enumerate(spans):
        # Before the first word of a later interval, or at the end.
        start = next((w for w, i in zip(words, intervals, strict=True) if i > n), len(translation))
        result += translation[position:start]
        before, after = result.rstrip(), translation[start:].lstrip()
        left, right = "", ""
        attached = span.left and span.text.startswith(("</", "]"))  # a closing tag at its word
        if before and before[-1] not in _BEGINNINGS and not attached:
            left = " " * _needs_space(span.text[0], span.left, before[-1])
        if after and after[0] not in _STOPS:
            right = " " * _needs_space(span.text[-1], span.right, after[0])
            # A tag that opens or closes inside a word, as in "<b>dog</b>s", is now between two.
            paired = span.depth != (spans[n - 1].depth if n else 0)
            if paired and before != result and not left and not right:
                left, right = ("", " ") if attached else (" ", "")
        result = before + left + span.text + right
        position = len(translation) - len(after)
    return result + translation[position:]


def _spans(text: str, items: Sequence[Item]) -> list[tuple[int, int]]:
    """Extend items by the brackets around them and by attached parts of words."""
    spans: list[tuple[int, int]] = []
    for item in items:
        begin, end = item.begin, item.end
        if item.kind != "tag":
            if (text[begin - 1 : begin], text[end : end + 1]) in _BRACKETS:
                begin, end = begin - 1, end + 1
            match = _INSEPARABLE.match(text, end)
            end = match.end() if match else end
        between = text[spans[-1][1] : begin] if spans else "-"
        if spans and not any(map(str.isalnum, between)):
            begin = spans.pop()[0]
        spans.append((begin, max(end, item.end)))
    if spans and not any(map(str.isalnum, text[: spans[0][0]])):  # "{name}: what follows"
        begin, end = spans[0]
        match = re.compile(r"[:,;]").match(text, end)
        spans[0] = (begin, match.end() if match else end)
    return spans


def _update_open_tags(opened: list[str], tag: str) -> None:
    if tag in ("**", "~~") and tag in opened:
        opened.remove(tag)
    elif tag.startswith(("</", "]")):
        del opened[-1:]
    elif tag.startswith(("<", "[", "![", "**", "~~")) and not tag.endswith("/>"):
        opened.append(tag)


def _min_cost_intervals(costs: list[list[float]], empty: list[float]) -> list[int]:
    """Assign words to intervals in order (dynamic programming), at minimum cost.

    An interval without a word has the cost `empty`.
    """
    count = len(empty)
    skipped = [sum(empty[:i]) for i in range(count + 1)]
    total = [skipped[i] for i in range(count)]
    chosen: list[list[int]] = []
    for n, cost in enumerate(costs):
        best, before = [], total
        total = []
        for i in range(count):
            leave = {j: before[j] + skipped[i] - skipped[min(j + 1, i)] for j in range(i + 1)}
            best.append(min(leave, key=lambda j: (leave[j], -j)) if n else i)
            total.append(leave[best[i]] + cost[i])
        chosen.append(best)
    ends = {i: total[i] + skipped[count] - skipped[i + 1] for i in range(count)}
    interval = min(ends, key=lambda i: (ends[i], i))
    found = []
    for best in reversed(chosen):
        found.append(interval)
        interval = best[interval]
    return found[::-1]


def _needs_space(edge: str, was: str, neighbour: str) -> bool:
    """Return whether a span needs a space on the side of its last character, `edge`.

    `was` is the adjacent character in the source (or empty), `neighbour` in the translation.
    """
    if neighbour.isalnum():
        return edge.isalnum() or not was.isalnum()
    return not was or was.isalnum()
