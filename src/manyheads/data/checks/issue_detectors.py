"""Detectors of the issues of a single text or pair.

A table maps the keys of manyheads.data.checks.issue_types.ISSUE_TYPES to functions of a text.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

from manyheads.data.text.formats import SIDES, Pair
from manyheads.data.text.languages import (
    base,
    count,
    count_words,
    languages_with_words,
    letters,
    script,
    typical_words,
)

TOO_LONG = (250, 2000)  # words, characters
TELLING = 0.1  # of the pairs, that must seem swapped before all are taken to be

Detector = Callable[[str], object]  # returns a true value if a text has the issue

_ANY = re.compile(r"[^\W\d_]+")
_LATIN = letters("Latin")
# Digits, and the word behind them. Before thousands or more they are part of one: 38만 is 380,000.
_DIGITS = re.compile(r"(\d[\d.,]*+)(\s?[천만억조千万萬亿億兆])?")
_NUMBER = re.compile(r"\d{1,15}(?:[.,]\d{1,15}){0,15}")
_TAGS = (
    "a|b|i|u|p|br|hr|em|strong|span|div|font|table|tr|td|th|ul|ol|li|img|h[1-6]|sup|sub|code|pre|tt"
)
_WITHOUT_SPACES = {"ja", "km", "lo", "my", "th", "zh"}
_TYPOGRAPHY = {"fr": "\u00a0\u202f\u2009", "ja": "\u3000", "zh": "\u3000"}  # usual spaces

# The bytes 0x80-0x9f are these characters in Windows-1252, and control characters in Latin-1.
_CP1252 = {
    bytes([code]).decode("cp1252"): chr(code)
    for code in range(0x80, 0xA0)
    if code not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}
_AS_BYTES = str.maketrans(_CP1252)
_CONTINUED = f"[\u0080-\u00bf{''.join(_CP1252)}]"
_SUSPECT = re.compile(f"[\u00c2-\u00f4]{_CONTINUED}")
# Not used in any language; "Ã»" and "Ã”" may end a Portuguese quotation in capitals.
_CERTAIN = re.compile(f"[ÂÃ][\u0080-\u00ba\u00bc-\u00bf]|â€{_CONTINUED}|ðŸ{_CONTINUED}{_CONTINUED}")

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f]")
_ENTITY = re.compile(r"&(?:[A-Za-z]{2,8}|#\d{1,6}|#[xX][\da-fA-F]{1,5});")


def fix_mojibake(text: str) -> str | None:
    """Restore UTF-8 text that was decoded as Latin-1 or Windows-1252; None if it was not.

    One suspicious pair of characters can occur in correct text ("ß" before a closing quote), so at
    least two are required, or one that no language uses.
    """
    found = _SUSPECT.findall(text)
    if not found:
        return None
    certain = _CERTAIN.search(text)
    try:
        return _decoded(text) if len(found) > 1 or certain else None
    except UnicodeError:  # only a part was decoded wrongly
        return _CERTAIN.sub(_decoded_match, text) if certain else None


def _decoded(text: str) -> str:
    return text.translate(_AS_BYTES).encode("latin-1").decode("utf-8")


def _decoded_match(match: re.Match[str]) -> str:
    try:
        return _decoded(match[0])
    except UnicodeError:
        return match[0]


def unescape_entities(text: str) -> str:
    """Replace HTML entities by their characters; unknown ones stay."""
    return _ENTITY.sub(_character, text)


def _character(entity: re.Match[str]) -> str:
    character = html.unescape(entity[0])
    return entity[0] if character == "\ufffd" else character


def unusual_spaces(language: str | None) -> re.Pattern[str]:
    """Return a pattern of spaces that are unusual in a language."""
    usual = _TYPOGRAPHY.get(base(language or ""), "")
    every = [*"\t\u00a0\u1680", *map(chr, range(0x2000, 0x200B)), *"\u2028\u2029\u202f\u205f\u3000"]
    return re.compile(f"[{''.join(space for space in every if space not in usual)}]")


def _is_too_long(text: str) -> bool:
    words, characters = TOO_LONG
    return len(text) > characters or (len(text) > words and text.count(" ") >= words)


def _has_no_words(text: str) -> bool:
    visible = len(text) - text.count(" ")
    return visible >= 3 and count(_ANY, text) < visible / 4


def text_detectors(language: str | None) -> tuple[dict[str, Detector], dict[str, Detector]]:
    """Return the detectors for any text, and those for texts that are not ASCII."""
    anywhere: dict[str, Detector] = {
        "control-characters": CONTROL.search,
        "line-break": re.compile(r"[\n\r]").search,
        "html-entities": lambda text: "&" in text and unescape_entities(text) != text,
        "markup": re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>", re.IGNORECASE).search,
        "no-words": _has_no_words,
        "only-url": re.compile(r"\s*(?:https?://|www\.)\S+\s*").fullmatch,
        "repeated-characters": re.compile(r"([^\W\d_])\1{5}|([^\w\s])\2{11}").search,
        "too-long": _is_too_long,
        "spacing": re.compile("^ |  | $").search,
        "unusual-spaces": unusual_spaces(language).search,
    }
    if base(language or "") not in _WITHOUT_SPACES:
        anywhere["long-word"] = re.compile(r"[^\W\d_]{61}").search
    beyond_ascii: dict[str, Detector] = {
        "replacement-character": lambda text: "\ufffd" in text,
        "byte-order-mark": lambda text: "\ufeff" in text,
        "invisible-characters": INVISIBLE.search,
        "not-nfc": lambda text: not unicodedata.is_normalized("NFC", text),
    }
    return anywhere, beyond_ascii


class Expected(NamedTuple):
    """Expectations for one side; None or empty if its language is unknown."""

    detectors: tuple[dict[str, Detector], dict[str, Detector]]
    script: str | None
    words: frozenset[str]  # frequent in this language and not in the other
    others: tuple[frozenset[str], ...]  # for each other language, frequent there and not in this


class PairIssueDetector:
    """Finds the issues of a pair of sentences; a language may be None (unknown)."""

    def __init__(self, source: str | None, target: str | None) -> None:
        self.sides = (self._expected(source, target), self._expected(target, source))

    @staticmethod
    def _expected(language: str | None, other: str | None) -> Expected:
        detectors = text_detectors(language)
        if language is None or other is None:
            return Expected(detectors, script(language) if language else None, frozenset(), ())
        foreign = [typical_words(each, language) for each in languages_with_words()]
        words = typical_words(language, other)
        return Expected(detectors, script(language), words, tuple(filter(None, foreign)))

    def __call__(self, pair: Pair) -> dict[str, str]:
        """Return the issues of a pair, each with its side: source, target, or both."""
        issues: dict[str, str] = {}
        texts = list(pair[1:])
        for number, (side, text, expected) in enumerate(zip(SIDES, texts, self.sides, strict=True)):
            anywhere, beyond_ascii = expected.detectors
            kinds = []
            if not text.isascii():
                if (original := fix_mojibake(text)) is not None:
                    kinds.append("mojibake")
                    texts[number] = text = original
                kinds += [kind for kind, detect in beyond_ascii.items() if detect(text)]
            kinds += [kind for kind, detect in anywhere.items() if detect(text)]
            for kind in kinds:
                issues[kind] = "both" if kind in issues else side
        self._compare(texts[0], texts[1], issues)
        return issues

    def _compare(self, source: str, target: str, issues: dict[str, str]) -> None:
        if source.casefold() == target.casefold():
            words = re.findall(r"[^\W\d_]{2,}", source)
            if len(words) > 2 and "only-url" not in issues:  # copying names and codes is correct
                issues["copied"] = "both"
            return
        # Smaller numbers may be words, or hours that differ by 12.
        large = [{number for number in numbers(side) if number > 31} for side in (source, target)]
        if all(large) and large[0].isdisjoint(large[1]):
            issues["different-numbers"] = "both"
        issues |= self._language_issue(source, target)

    def most_swapped(self, pairs: Sequence[Pair]) -> bool:
        """Tell whether more pairs seem the wrong way round than the right one."""
        wrong = sum("swapped-sides" in self._language_issue(*pair[1:]) for pair in pairs)
        right = sum("swapped-sides" in self._language_issue(*pair[:0:-1]) for pair in pairs)
        return wrong > max(right, TELLING * len(pairs))

    def _language_issue(self, source: str, target: str) -> dict[str, str]:
        """Detect a side in the wrong script or language, or swapped sides."""
        first, second = self.sides
        if first.script and second.script and first.script != second.script:
            own, other = letters(first.script), letters(second.script)
            mine = count(other, source), count(own, target)
            right = count(own, source), count(other, target)
            if min(mine) > 1 and mine[0] > 2 * right[0] and mine[1] > 2 * right[1]:
                return {"swapped-sides": "both"}
        texts = (source, target)
        for side, text, expected in zip(SIDES, texts, self.sides, strict=True):
            if expected.script and is_foreign(text, expected.script):
                return {"unexpected-script": side}
        if not (first.words and second.words):
            return {}
        right = count_words(source, first.words), count_words(target, second.words)
        if all(right):
            return {}
        mine = count_words(source, second.words), count_words(target, first.words)
        if right == (0, 0) and min(mine) > 0 and sum(mine) > 2:
            return {"swapped-sides": "both"}
        for side, text, expected, own_words in zip(SIDES, texts, self.sides, right, strict=True):
            words = frozenset() if own_words else frozenset(_ANY.findall(text.lower()))
            if any(len(words & other) > 2 for other in expected.others):
                return {"unexpected-language": side}
        return {}


def is_foreign(text: str, script: str) -> bool:
    """Return whether a text is in another script; Latin terms are allowed in every script."""
    latin = script == "Latin"
    if latin and text.isascii():
        return False
    own = count(letters(script), text)
    borrowed = 0 if latin else count(_LATIN, text)
    foreign = count(_ANY, text) - own - borrowed
    return foreign > max(own, 1) or (own == 0 and borrowed >= 12 and text.count(" ") >= 3)


def numbers(text: str) -> list[int]:
    """Return the numbers of a text, without thousands and decimal separators."""
    return [
        int(re.sub("[.,]", "", number))
        for digits, thousands in _DIGITS.findall(text)
        if not thousands
        for number in _NUMBER.findall(digits)
    ]
