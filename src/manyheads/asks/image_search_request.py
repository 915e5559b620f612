"""Indexing of images, and search."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import model_validator

from manyheads.asks.option import Option
from manyheads.asks.request import Answer, Limited, Request, Several, TextInputs
from manyheads.bounded_numbers import Count


class IndexRequest(Request):
    """Add images to an index, and bring those that are in it up to date."""

    images: Annotated[
        Several[str],
        Option(
            "Images, folders, tables, .parquet or .tar files of images.",
            metavar="IMAGES",
            argument=True,
        ),
    ] = ()
    image_column: Annotated[
        str, Option("Column of a table with images or paths.", metavar="COLUMN")
    ] = "image"
    label_column: Annotated[
        str | None, Option("Column of a table to show beside an image's name.", metavar="COLUMN")
    ] = None
    names: Annotated[bool, Option("Names of files, or labels, count as well.")] = False
    prune: Annotated[bool, Option("Remove images that are gone.")] = False
    reread: Annotated[bool, Option("Read unchanged files again, too.")] = False

    @model_validator(mode="after")
    def _something_to_do(self) -> Self:
        if not self.images and not self.prune:
            raise ValueError("there are no images to index: name some, or set `prune=True`")
        return self


class UnreadableImage(Answer):
    """An image that could not be indexed, and why."""

    path: str
    error: str


class IndexAnswer(Answer):
    """What has changed in an index."""

    images: int  # that are in the index now
    added: int
    changed: int  # images with another content than before
    unchanged: int
    removed: int
    embedded: int  # contents that the model was run on; the vectors of the others were there
    gone: int  # images in the index whose files are not there any more
    unreadable: tuple[UnreadableImage, ...] = ()


class ImageSearchRequest(TextInputs):
    """Find images of an index by words, or by an image that they resemble."""

    input_field = "queries"
    limited: ClassVar[Limited] = {"top": "top"}

    queries: Several[str]  # texts, or paths of images
    top: Annotated[Count, Option("Number of images per query.")] = 10
    kind: Annotated[
        Literal["text", "image"] | None,
        Option("What the queries are; by default, image files are images.", metavar="text|image"),
    ] = None


class FoundImage(Answer):
    """An image that was found."""

    path: str
    score: float  # cosine of the angle between its vector and that of the query, -1 to 1
    label: str | None = None
    gone: bool | None = None  # True: its file is not there any more


class ImageSearchAnswer(Answer):
    """The images for one query, best first, or why it could not be answered."""

    query: str
    kind: Literal["text", "image"]
    images: tuple[FoundImage, ...] | None = None
    error: str | None = None
