"""Predictors of text: called with one text or with several, answers written one a line."""

from abc import ABC, abstractmethod
from typing import overload

from manyheads.predict.text_reader import TextReader


def one_line(text: str) -> str:
    """Keep an answer on its line, so that line N belongs to text N: a byte token may end a line."""
    return text.replace("\r", " ").replace("\n", " ")


class TextPredictor(TextReader, ABC):
    """Call it with a text for its answer, or with a list of texts for a list in the same order."""

    @overload
    def __call__(self, text: str) -> str: ...
    @overload
    def __call__(self, text: list[str] | tuple[str, ...]) -> list[str]: ...
    def __call__(self, text: str | list[str] | tuple[str, ...]) -> str | list[str]:
        """Answer one text, or several: the same number, in the same order.

        Raises:
            UsageError: neither a text nor a list of texts.
        """
        if isinstance(text, str):
            return self.answers([text])[0]
        return self.answers(text)

    @abstractmethod
    def answers(self, texts: list[str] | tuple[str, ...]) -> list[str]:
        """Answer each text."""
