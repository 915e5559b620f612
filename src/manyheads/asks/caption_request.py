"""Texts for images."""

from typing import Annotated

from manyheads.asks.option import Option
from manyheads.asks.request import Answer, ImageRequest
from manyheads.asks.search_options import Probabilities, SearchOptions


class CaptionRequest(ImageRequest, SearchOptions):
    """Write the text of images: what they show, or what is printed on them."""

    language: Annotated[
        str | None, Option("Language of the text, such as ko; the model's first by default.")
    ] = None
    probabilities: Probabilities = False

    def cost_of(self, count: int) -> int:
        """Tokens of so many images in each beam."""
        return super().cost_of(count) * self.width


class CaptionToken(Answer):
    """One token of a caption."""

    token: str
    probability: float  # given the image and the tokens before it
    begin: int  # characters of the caption
    end: int


class Caption(Answer):
    """One text for an image."""

    text: str
    score: float
    finished: bool = True  # False: cut off at the length limit
    tokens: tuple[CaptionToken, ...] | None = None  # with probabilities


class CaptionAnswer(Answer):
    """The texts of one image, best first, or why it could not be read."""

    path: str
    text: str | None = None  # the best
    language: str | None = None
    n_best: tuple[Caption, ...] | None = None
    notes: tuple[str, ...] | None = None
    error: str | None = None
