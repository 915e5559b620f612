"""Readable labels of tokens for plots, terminals and tables."""

from collections.abc import Iterable

SPACE = "\u2581"  # sentencepiece's symbol for a leading space
BLANK = "\u2423"  # an open box, for a token of only white space
LONGEST = 24  # characters


def label(token: str) -> str:
    r"""Remove the leading space symbol, escape control characters, shorten long tokens.

    Examples:
        >>> label("\u2581Friday"), label("\u2581"), label("?"), label("a\nb")
        ('Friday', '␣', '?', 'a\\nb')
    """
    text = token.replace(SPACE, " ").strip(" ")
    if not text or text.isspace():
        return BLANK
    # A control character could move a terminal's cursor: show its Python escape.
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return cut(text, LONGEST)


def cut(text: str, length: int) -> str:
    """Shorten a text to at most `length` characters, the last of them an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + "…"


def labels(tokens: Iterable[str]) -> list[str]:
    """Return the labels of several tokens."""
    return [label(token) for token in tokens]
