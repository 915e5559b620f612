"""Guess the language of a text among some: by its letters, then by frequent words."""

import re
from collections.abc import Iterable

from manyheads.data.text.languages import base, count, count_words, frequent_words, letters, script

NAMES = {
    "cs": "Czech",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "zh": "Chinese",
}


def guess(text: str, languages: Iterable[str]) -> list[tuple[str, float]]:
    """Rank languages for a text, with a confidence from 0 to 1; the first is the best guess."""
    known = list(dict.fromkeys(base(each) for each in languages))
    signs = sum(map(str.isalpha, text))
    words = len(re.findall(r"[^\W\d_]+", text))
    scores = {}
    for language in known:
        written = script(language)
        share = count(letters(written), text) / signs if written and signs else 0.0
        hits = count_words(text, frequent_words(language)) / words if words else 0.0
        # Latin names and abbreviations occur in texts of other scripts, and hardly the reverse.
        scores[language] = share * (0.1 + hits if written == "Latin" else 1.0)
    total = sum(scores.values())
    ranked = sorted(scores.items(), key=lambda each: -each[1])
    return [(language, round(score / total, 3) if total else 0.0) for language, score in ranked]
