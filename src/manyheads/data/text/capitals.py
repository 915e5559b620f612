"""Texts in capitals: to sentence case, and back."""

import re
from collections.abc import Callable

# A capital inside a sentence must be this much cheaper (ln 4: four times as probable) than the
# small letter. Beginnings of sentences count for capitals, which stand there for another reason.
MARGIN = 1.39
CHEAPER = 0.8  # of the cost in capitals: what sentence case may cost at most, to be worth it
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_FIRST = re.compile(r"(?:\A|[.!?…]['\")\]]*\s)[\W\d_]*\Z")

Cost = Callable[[str], float]  # of a text, as `PieceCosts`


def in_capitals(text: str) -> bool:
    """Tell whether a text has letters, at least two, and all are capitals."""
    if not text.isupper():  # nearly all texts, without a look at each character
        return False
    letters = [character for character in text if character.isalpha()]
    return len(letters) > 1 and all(map(str.isupper, letters))


def sentence_case(text: str, cost: Cost) -> str | None:
    """Write a text in capitals as a vocabulary knows its words; None where that is no gain.

    The first word of a sentence begins with a capital, others where that is cheaper for them, and
    words that are known in capitals stay ("TV"). No character moves. A vocabulary that was learned
    from texts in capitals knows them as well: such a text stays as it is.
    """
    if not in_capitals(text):
        return None
    changed = _WORD.sub(lambda word: _in_case(word, cost), text)
    return changed if cost(changed) < CHEAPER * cost(text) else None


def _in_case(word: re.Match[str], cost: Cost) -> str:
    written, small = word[0], word[0].lower()
    if len(small) != len(written):  # a letter without a small form of its own
        return written
    large = small[0].upper() + small[1:] if len(small[0].upper()) == 1 else small
    first = _FIRST.search(word.string, max(0, word.start() - 99), word.start()) is not None
    ways = {large: 0.0} if first else {small: 0.0, large: MARGIN}
    ways |= {written: ways.get(written, MARGIN)}
    return min(ways, key=lambda way: cost(way) + ways[way])


def to_capitals(text: str) -> str:
    """Write a text in capitals; no character moves, so that ß becomes the capital ẞ."""
    return "".join(map(_capital, text))


def _capital(character: str) -> str:
    capital = "ẞ" if character == "ß" else character.upper()
    return capital if len(capital) == 1 else character
