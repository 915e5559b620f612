"""Continuation of texts."""

from typing import Annotated, ClassVar

from annotated_types import Ge, Le

from manyheads.asks.option import Option
from manyheads.asks.request import Answer, Limited
from manyheads.asks.search_options import SearchRequest


class GenerateRequest(SearchRequest):
    """Continue texts."""

    limited: ClassVar[Limited] = {**SearchRequest.limited, "tokens": "tokens"}

    tokens: Annotated[
        Annotated[int, Ge(1), Le(10_000)], Option("Maximum number of new tokens.")
    ] = 64

    @property
    def cost(self) -> int:
        """Tokens of the texts in each beam, and those to write."""
        return super().cost + self.tokens * len(self.texts) * self.width


class Continuation(Answer):
    """A prompt and its continuation."""

    text: str
    log_probability: float
    finished: bool  # False: cut off at the limit


class GenerateAnswer(Answer):
    """The continuations of one prompt, best first."""

    prompt: str
    texts: tuple[Continuation, ...]
    notes: tuple[str, ...] | None = None
