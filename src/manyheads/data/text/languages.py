"""Scripts and frequent words of languages, to detect text in a wrong one, or guess which it is."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

NAMES = {"cs": "Czech", "de": "German", "en": "English", "es": "Spanish", "fr": "French"}
NAMES |= {"it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pl": "Polish"}
NAMES |= {"pt": "Portuguese", "ru": "Russian", "zh": "Chinese"}

SURE = 0.6  # confidence of a guess that is believed

_TOKEN = re.compile(r"[^\W\d_]+")

# What a code looks like, such as en, pt-BR or zh_Hans.
_CODE = re.compile("[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*")


@cache
def _known() -> dict[str, Any]:
    """Read scripts, frequent words and codes of three letters."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def is_language_code(text: str) -> bool:
    """Tell whether a text looks like the code of a language."""
    return _CODE.fullmatch(text) is not None


def base(language: str) -> str:
    """Return a language code without script and region: pt for pt_BR, zh for cmn_Hans."""
    code = re.split("[-_]", language.lower())[0]
    return str(_known()["short"].get(code, code))


def script(language: str) -> str | None:
    """Return the script of a language; None if it is unknown or has several."""
    code, scripts = base(language), _known()["scripts"].items()
    return next((name for name, each in scripts if code in each["languages"].split()), None)


@cache
def letters(script: str) -> re.Pattern[str]:
    """Return a pattern of a run of letters of a script."""
    return re.compile(f"[{_known()['scripts'][script]['letters']}]+")


def count(letters: re.Pattern[str], text: str) -> int:
    """Count the letters in a text, given a pattern of runs of them."""
    return sum(map(len, letters.findall(text)))


def typical_words(language: str, other: str) -> frozenset[str]:
    """Return the frequent words of a language that are not frequent in the other."""
    own, others = frequent_words(language), frequent_words(other)
    return own - others if others else frozenset()


def frequent_words(language: str) -> frozenset[str]:
    """Return the frequent words of a language; none where they are unknown."""
    return frozenset(_known()["words"].get(base(language), "").split())


def languages_with_words() -> tuple[str, ...]:
    """Return the languages whose frequent words are known."""
    return tuple(_known()["words"])


def recognised() -> tuple[str, ...]:
    """Return the languages that frequent words or a script tell from others."""
    scripts = _known()["scripts"]
    alone = (each["languages"].split() for name, each in scripts.items() if name != "Latin")
    return (*NAMES, *languages_with_words(), *chain.from_iterable(alone))


def count_words(text: str, words: frozenset[str]) -> int:
    """Count the words of a text that are in `words`."""
    return sum(token in words for token in _TOKEN.findall(text.lower()))


def header_words(*languages: str) -> Mapping[str, None]:
    """Return usual column names of tables of sentence pairs, in lower case."""
    return dict.fromkeys([*_known()["header"].split(), *(code.lower() for code in languages)])


def recognise(text: str, languages: Iterable[str]) -> str | None:
    """Return the language that a text is surely in; None if there is doubt.

    Of 1,000 English sentences of tatoeba/val, none is taken for German, French or Korean; of as
    many German ones 720 are recognised, 792 of French and 980 of Korean.

    Examples:
        >>> recognise("Wo ist der Bahnhof?", ["en", "de", "ko"])
        'de'
        >>> recognise("Hotel", ["en", "de", "ko"])
    """
    language, share = guess(text, languages)[0]
    return language if share >= SURE else None


def guess(text: str, languages: Iterable[str]) -> list[tuple[str, float]]:
    """Rank languages for a text, with a confidence from 0 to 1; the first is the best guess."""
    signs = sum(map(str.isalpha, text))
    words = len(_TOKEN.findall(text))
    scores = {}
    for language in dict.fromkeys(map(base, languages)):
        written = script(language)
        share = count(letters(written), text) / signs if written and signs else 0.0
        hits = count_words(text, frequent_words(language)) / words if words else 0.0
        # Latin names and abbreviations occur in texts of other scripts, and hardly the reverse.
        scores[language] = share * (0.1 + hits if written == "Latin" else 1.0)
    total = sum(scores.values())
    ranked = sorted(scores.items(), key=lambda each: -each[1])
    return [(language, round(score / total, 3) if total else 0.0) for language, score in ranked]
