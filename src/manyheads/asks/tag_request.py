"""Spacing of Korean texts."""

from manyheads.asks.request import Answer, TextRequest


class TagRequest(TextRequest):
    """Put spaces into Korean texts."""


class TagAnswer(Answer):
    """One text with spaces, and the probability of a space after each character."""

    source: str
    text: str
    characters: tuple[str, ...]
    space: tuple[float, ...]
    notes: tuple[str, ...] | None = None
