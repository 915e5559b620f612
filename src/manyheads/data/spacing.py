"""Korean word spacing as tagging: for every character, whether a space follows it.

Input and output match one to one (T1). Korean puts spaces between phrases, and even careful
writers doubt where; a text without them can be read and restored.
"""

from collections.abc import Sequence
from itertools import accumulate

TAGS = ("together", "space")  # what follows a character: its neighbour, or a space


def without_spaces(text: str) -> tuple[str, list[int]]:
    """Remove all white space; say for each character left whether some followed it.

    The last character has no neighbour and is tagged as any inside a word.
    """
    words = text.split()
    tags = [0] * sum(map(len, words))
    for end in list(accumulate(map(len, words)))[:-1]:
        tags[end - 1] = 1
    return "".join(words), tags


def with_spaces(characters: str, tags: Sequence[int]) -> str:
    """Put a space behind every character tagged so; none at the end of the text."""
    pairs = zip(characters, tags, strict=True)
    return "".join(f"{character} " if tag else character for character, tag in pairs).rstrip(" ")
