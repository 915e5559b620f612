"""How a token is written where people read it: a plot, a terminal, a table."""

from collections.abc import Iterable

SPACE = "\u2581"  # how sentencepiece writes the space in front of a word
BLANK = "\u2423"  # an open box, for a token that is nothing but space
LONGEST = 24  # characters


def label(token: str) -> str:
    r"""Drop the mark of a word's start; make the rest visible, harmless and not too long.

    Examples:
        >>> label("\u2581Friday"), label("\u2581"), label("a\nb")
        ('Friday', '␣', 'a\\nb')
    """
    text = token.replace(SPACE, " ").strip(" ")
    if not text or text.isspace():
        return BLANK
    # A control character could move a terminal's cursor: show it as Python would write it.
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return cut(text, LONGEST)


def cut(text: str, length: int) -> str:
    """Shorten a text to at most `length` characters, the last of them an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + "…"


def labels(tokens: Iterable[str]) -> list[str]:
    """Write several tokens, as `label` does."""
    return [label(token) for token in tokens]
