"""Looking inside a model."""

from typing import Annotated, Literal

from manyheads.asks.option import Option
from manyheads.asks.request import OpenedImage, Request, Several, Without


class LookRequest(Request):
    """Run a model on a text or an image with a recorder open."""

    # A text, the path of an image, or one that Pillow opened; JSON has the first two.
    given: Annotated[
        str | OpenedImage, Option("A sentence, or an image's path.", metavar="INPUT", argument=True)
    ]
    kind: Literal["text", "image"] | None = None  # None: as the model reads it, or a file is
    untrained: Annotated[
        bool, Option("Show the same model with freshly drawn weights, to compare maps with.")
    ] = False
    without: Without = ()
    uniform: Annotated[
        Several[str],
        Option(
            "Let an attention weigh all tokens alike, such as 'decoder layer 3 cross'; repeatable.",
            metavar="ATTENTION",
        ),
    ] = ()
    # Of image models:
    target: Annotated[
        str | None,
        Option("Images: the class to explain; by default the most probable.", metavar="CLASS"),
    ] = None
    baseline: Annotated[
        Literal["black", "mean", "blur"],
        Option("Images: what gradients are integrated from: black, mean, blur."),
    ] = "black"
    # None: if that costs little. Where nothing else explains an answer, they are there always.
    integrated: Annotated[bool | None, Option("Also integrate gradients, which takes seconds.")] = (
        False
    )
    language: Annotated[str | None, Option("Captioners: language of the text, such as ko.")] = None
    # Of translators and captioners:
    reference: Annotated[
        str | None,
        Option(
            "Translators and captioners: a text of your own, scored token by token.", metavar="TEXT"
        ),
    ] = None
    prefix: Annotated[
        str, Option("Translators: text that the translation begins with.", metavar="TEXT")
    ] = ""
    # Of translators and classifiers of images:
    instead: Annotated[
        str | None,
        Option(
            "Translators, classifiers of images: another input; which states make the difference.",
            metavar="INPUT",
        ),
    ] = None
    why: Annotated[
        str | None,
        Option(
            "Translators, classifiers of images: a word or class, and what speaks for it.",
            metavar="WORD",
        ),
    ] = None
    why_not: Annotated[
        str | None, Option("With --why: the other word or class.", name="--not", metavar="WORD")
    ] = None
    # Of text models:
    word: Annotated[
        str | None, Option("Texts: a word whose vector is compared between sentences.")
    ] = None
    also: Annotated[
        Several[str], Option("Another sentence with this word; repeatable.", metavar="TEXT")
    ] = ()
