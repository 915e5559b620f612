"""Items that a model has never seen are left out of a sentence and put back where they belong.

A tag or a URL says nothing to a small model and spoils the rest of its sentence. So the sentence is
translated without, and what was left out goes back between the words of the translation, at the
place that agrees best with an alignment of source and target.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from manyheads.data.placeholders import Item

_STOPS = set(".,;:!?)]}。、，！？」』）")
_BEGINNINGS = set("([{「『（¿¡")
_INSEPARABLE = re.compile(r"[\w'\u2019-]*\w")  # "{user}'s"
_BRACKETS = {("(", ")"), ("[", "]"), ('"', '"'), ("'", "'"), ("\u201c", "\u201d")}


class Link(NamedTuple):
    """Characters [begin, end) of a translation, and the character of the source they come from."""

    begin: int
    end: int
    source: int


@dataclass(frozen=True, slots=True)
class Strand:
    """What is left out at one place: one item, or several with no word between them.

    `depth` counts the tags that are open behind it. `left` and `right` are the characters that it
    touched, or empty.
    """

    text: str
    place: int  # in the source without strands
    depth: int
    left: str
    right: str


def take_out(text: str, items: Sequence[Item]) -> tuple[str, list[Strand]]:
    """Leave items out of a text; return what is left, with single spaces, and the items."""
    strands: list[Strand] = []
    rest, position = "", 0
    opened: list[str] = []
    for begin, end in _spans(text, items):
        for item in items:
            if begin <= item.begin < end and item.kind == "tag":
                _follow(opened, item.text)
        rest += text[position:begin]
        left, right = rest[-1:].strip(), text[end : end + 1].strip()
        rest_end = len(rest.rstrip())
        strands.append(Strand(text[begin:end], rest_end, len(opened), left, right))
        position = end
        # Of the spaces on both sides one goes, and that before a full stop.
        if not left and not (right and right.isalnum()):
            rest = rest[:rest_end]
    return rest + text[position:], strands


def weave(source: str, translation: str, strands: Sequence[Strand], links: Sequence[Link]) -> str:
    """Put back what was left out of a source into its translation.

    Strands keep their order. Every word of the translation then lies between two strands, as the
    character that it comes from does in the source; the places are chosen so that this is the same
    interval for as many words as possible, and tags enclose no more than needed.
    """
    if not strands:
        return translation
    words = _places(translation)
    costs = [[0.0] * (len(strands) + 1) for _ in words]
    for link in links:
        word = max((n for n, place in enumerate(words) if place <= link.begin), default=0)
        home = sum(strand.place <= link.source for strand in strands)
        for interval in range(len(strands) + 1):
            inside = strands[interval - 1].depth if interval else 0
            costs[word][interval] += (interval != home) + 0.01 * inside
    if words and translation[words[-1]] in _STOPS and source.rstrip()[-1:] in _STOPS:
        end = sum(strand.place < len(source.rstrip()) for strand in strands)
        costs[-1] = [5.0 * (interval != end) for interval in range(len(strands) + 1)]
    # Tags around something are not to end up around nothing.
    empty = [
        2.0 if strand.depth and strands[n + 1].place > strand.place + 1 else 0.0
        for n, strand in enumerate(strands[:-1])
    ]
    intervals = _cheapest(costs, [0.0, *empty, 0.0])
    woven, position = "", 0
    for n, strand in enumerate(strands):
        # Before the first word of a later interval, or at the end.
        place = next((w for w, i in zip(words, intervals, strict=True) if i > n), len(translation))
        woven += translation[position:place]
        before, after = woven.rstrip(), translation[place:].lstrip()
        left, right = "", ""
        if before and before[-1] not in _BEGINNINGS:
            left = " " * _apart(strand.text[0], strand.left, before[-1])
        if after and after[0] not in _STOPS:
            right = " " * _apart(strand.text[-1], strand.right, after[0])
        woven = before + left + strand.text + right
        position = len(translation) - len(after)
    return woven + translation[position:]


def _spans(text: str, items: Sequence[Item]) -> list[tuple[int, int]]:
    """Extend items to what cannot do without them: brackets around them, parts of words."""
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


def _follow(opened: list[str], tag: str) -> None:
    """Keep a list of the tags that are open."""
    if tag in ("**", "~~") and tag in opened:
        opened.remove(tag)
    elif tag.startswith(("</", "]")):
        del opened[-1:]
    elif tag.startswith(("<", "[", "![", "**", "~~")) and not tag.endswith("/>"):
        opened.append(tag)


def _places(text: str) -> list[int]:
    """Where strands may go: before words, punctuation, and any sign of a script without spaces."""
    words = re.compile(r"[^\W\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff]+|\w|[^\w\s]+\Z|[^\w\s]+")
    return [match.start() for match in words.finditer(text)]


def _cheapest(costs: list[list[float]], empty: list[float]) -> list[int]:
    """Give every word an interval, never before that of the word to its left, at the least cost.

    Args:
        costs: of each word in each interval.
        empty: of each interval if it gets no word.
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


def _apart(edge: str, was: str, neighbour: str) -> bool:
    """Say whether a strand needs a space at its new place.

    Args:
        edge: its last character on that side.
        was: the character that it touched in the source, or empty.
        neighbour: the character that it would touch now.
    """
    if neighbour.isalnum():
        return edge.isalnum() or not was.isalnum()
    return not was or was.isalnum()
