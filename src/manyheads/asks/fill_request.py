"""Filling of blanks."""

from typing import Annotated, ClassVar

from manyheads.asks.option import Option
from manyheads.asks.request import Answer, Limited, TextRequest
from manyheads.bounded_numbers import Count


class FillRequest(TextRequest):
    """Propose tokens for each <mask> of texts."""

    limited: ClassVar[Limited] = {"top": "top"}

    top: Annotated[Count, Option("Number of proposals per <mask>.")] = 5


class Proposal(Answer):
    """A token for a mask."""

    token: str
    probability: float
    text: str  # filled in


class FillAnswer(Answer):
    """The proposals for each mask of one text, most probable first."""

    text: str
    blanks: tuple[tuple[Proposal, ...], ...]
    notes: tuple[str, ...] | None = None
