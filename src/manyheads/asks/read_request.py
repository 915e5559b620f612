"""Reading of text in images."""

from typing import Annotated

from manyheads.asks.option import Option
from manyheads.asks.request import Answer, ImageRequest


class ReadRequest(ImageRequest):
    """Read the text in images, and translate it."""

    # None: do not translate.
    to: Annotated[str | None, Option("Language to translate the text into, such as en.")] = None
    translator: Annotated[
        str | None,
        Option("Name or folder of a translator; the shipped one for these languages by default."),
    ] = None


class ReadAnswer(Answer):
    """The text of one image and its translation, or why it could not be read."""

    path: str
    text: str | None = None  # its lines; an empty one between paragraphs
    language: str | None = None
    to: str | None = None
    translation: str | None = None  # a line each text, an empty one between paragraphs
    notes: tuple[str, ...] | None = None
    error: str | None = None
