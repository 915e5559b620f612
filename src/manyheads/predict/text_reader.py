"""Predictors of text: called with one text or several; `look` reads tokens and their outputs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.predict.base_predictor import Predictor, text_positions

Span = list[int]  # first character, and the one after the last


class TextInput(NamedTuple):
    """A text as the model reads it."""

    ids: list[int]
    names: list[str]  # of the tokens, as people read them
    spans: list[Span | None]  # characters of the text that each token stands for


class TokenOutput(NamedTuple):
    """One output per token of a text."""

    ids: list[int]
    names: list[str]
    answer: str
    given: int = 0  # so many of the first outputs are tokens of the text itself


class TextReader(Predictor, ABC):
    """A predictor whose model reads one text."""

    @classmethod
    def positions(cls, recipe: Any) -> int:
        """Those of texts longer than in training."""
        return text_positions(recipe.train.max_length)

    @property
    def pieces(self) -> Sequence[Callable[[int], str]]:
        """Functions that write a token id, one for each embedding table of a vocabulary."""
        return ()

    @abstractmethod
    def read_tokens(self, text: str) -> TextInput:
        """Split a text into the tokens that the model reads."""

    def encode(self, tokens: Tensor) -> Tensor:
        """Run the model over the tokens of a text (1, token)."""
        return self.model(tokens)

    def tensor(self, ids: Sequence[int]) -> Tensor:
        """Make one example of ids on the model's device: (1, token)."""
        return torch.tensor([list(ids)], device=next(self.model.parameters()).device)


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
        return self.answers([text])[0] if isinstance(text, str) else self.answers(text)

    @abstractmethod
    def answers(self, texts: list[str] | tuple[str, ...]) -> list[str]:
        """Answer each text."""


class TokenPredictor(TextReader, ABC):
    """A predictor whose model gives one output per token."""

    @abstractmethod
    def outputs(self, text: str, ids: Sequence[int], best: Sequence[int]) -> TokenOutput:
        """Make outputs of the most probable class at each token."""


def check_texts(texts: object) -> None:
    """Refuse anything but a sequence of texts; a single text would be read letter by letter.

    Raises:
        UsageError: it is another object, or holds one.
    """
    if not isinstance(texts, list | tuple):
        raise UsageError(f"The texts are {texts!r:.80}: give a list of texts, such as ['One.'].")
    for place, each in enumerate(texts):
        if not isinstance(each, str):
            raise UsageError(f"Entry {place} of the list is {each!r:.80}, not a text.")


def check_seed(seed: int) -> None:
    """Refuse a negative seed.

    Raises:
        UsageError: it is below 0.
    """
    if seed < 0:
        raise UsageError(f"seed is {seed}: it must be at least 0.")


def refuse_empty(text: str) -> None:
    """Refuse a text without characters.

    Raises:
        UsageError: it is empty.
    """
    if not text.strip():
        raise UsageError("The text is empty: give a sentence to look at.")
