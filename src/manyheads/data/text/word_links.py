"""Word links: which characters of a translation come from which characters of its source.

They need no annotation: numbers and names are translated unchanged, so a word that occurs exactly
once on each side must be the same word.
"""

import re
from collections import Counter
from typing import NamedTuple

Span = tuple[int, int]  # characters [begin, end)

# A number, or letters of an alphabet, or of East Asian scripts: "2026년" and "TOEFL에서" are two.
_ASIAN = "\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7a3"
_WORD = re.compile(rf"\d+|[^\W\d_{_ASIAN}]+|[{_ASIAN}]+")
MIN_LETTERS = 4  # shorter words are often different words spelled alike: "die", "hat", "war"


class Link(NamedTuple):
    """Characters of a target, and the characters of its source that they translate."""

    target: Span
    sources: tuple[Span, ...]


def exact_matches(source: str, target: str) -> list[Link]:
    """Find the numbers and words that occur exactly once on each side.

    Examples:
        >>> exact_matches("Friday, 20 November 2026", "2026년 11월 20일 금요일")
        [Link(target=(0, 4), sources=((20, 24),)), Link(target=(10, 12), sources=((8, 10),))]
    """
    sides = [list(_WORD.finditer(text)) for text in (source, target)]
    counts = [Counter(match[0] for match in side).items() for side in sides]
    once = [{word for word, count in side if count == 1} for side in counts]
    positions = {match[0]: match.span() for match in sides[0]}
    return [
        Link(match.span(), (positions[match[0]],))
        for match in sides[1]
        if match[0] in once[0] & once[1] and (match[0].isdigit() or len(match[0]) >= MIN_LETTERS)
    ]
