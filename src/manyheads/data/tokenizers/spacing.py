"""Korean word spacing as tagging: for every character, whether a space follows it.

Input and output match one to one (T1). Korean puts spaces between phrases, and even careful
writers are often unsure where; a text without spaces can be read and restored.
"""

from collections.abc import Sequence
from itertools import accumulate

TAGS = ("together", "space")  # a character is followed by the next character, or by a space


def without_spaces(text: str) -> tuple[str, list[int]]:
    """Remove all white space; return the text and a tag for each of its characters.

    The last character gets the tag of a character inside a word.
    """
    words = text.split()
    tags = [0] * sum(map(len, words))
    for end in list(accumulate(map(len, words)))[:-1]:
        tags[end - 1] = 1
    return "".join(words), tags


def with_spaces(characters: str, tags: Sequence[int]) -> str:
    """Insert a space after every character with tag 1, but not at the end of the text."""
    pairs = zip(characters, tags, strict=True)
    return "".join(f"{character} " if tag else character for character, tag in pairs).rstrip(" ")
