"""Writing systems: which one a text is in, by its letters."""

import unicodedata
from collections import Counter
from functools import cache


def main_script(text: str) -> str:
    """Return the script of most letters, as `script_of`; empty if there are no letters."""
    counted = Counter(script_of(char) for char in text if char.isalpha())
    return counted.most_common(1)[0][0] if counted else ""


def script_share(text: str, script: str) -> float:
    """Return the share of the letters that belong to a script; -1 if there are no letters."""
    letters = {char: count for char, count in Counter(text).items() if char.isalpha()}
    own = sum(count for char, count in letters.items() if script_of(char) == script)
    return own / sum(letters.values()) if letters else -1


@cache
def script_of(char: str) -> str:
    """Return the first word of a letter's Unicode name: LATIN, HANGUL, CJK, ..."""
    return unicodedata.name(char, "?").partition(" ")[0]
