"""Refuse what a model cannot look at, before it is run."""

import os
from pathlib import Path

from manyheads.asks.look_request import LookRequest
from manyheads.data.images.image_file import SUFFIXES
from manyheads.errors import NotFoundError, UsageError
from manyheads.predict.base_predictor import Predictor

NO_REFERENCE = "does not translate, so it has no use for a reference: leave it out."
NO_LANGUAGE = "does not choose a language: leave it out."


def refuse_for_images(
    predictor: Predictor, request: LookRequest, *, writes: bool = False, causes: bool = False
) -> None:
    """Refuse anything but an image or the path of a file, and parameters of text models.

    `writes`: the model writes a text for the image, in a language, which may be one's own;
    `causes`: what makes its answer can be measured.
    """
    name, given = predictor.folder.name, request.given
    _refuse(
        name,
        *_of_causes(request, causes),
        (request.reference is not None and not writes, NO_REFERENCE),
        (request.language is not None and not writes, NO_LANGUAGE),
        (
            request.word is not None or bool(request.also),
            "looks at images, which have no words: leave the word out.",
        ),
        (
            isinstance(given, str) and request.kind == "text",
            "looks at images, and was given a text: give an image.",
        ),
    )
    if not isinstance(given, str):
        return
    if os.path.isdir(given):  # noqa: PTH112 - Path raises where a text is too long for a name
        raise UsageError(f"{given} is a folder: name an image in it.")
    if not os.path.exists(given):  # noqa: PTH110
        raise NotFoundError(
            f"There is no file {given}: {name} looks at images, so give the path of one."
        )


def refuse_for_texts(
    predictor: Predictor, request: LookRequest, *, translates: bool = False, causes: bool = False
) -> str:
    """Return the text; refuse an image or the path of one, and parameters of image models."""
    name, given = predictor.folder.name, request.given
    if not isinstance(given, str):
        raise UsageError(f"{name} reads texts, and was given an image: give a sentence.")
    may_be_file = request.kind is None and Path(given).suffix.lower() in SUFFIXES
    if may_be_file and os.path.isfile(given):  # noqa: PTH113
        raise UsageError(
            f"{given} is an image, and {name} reads texts: give a sentence, or an image model "
            "(`manyheads models` lists those that are shipped)."
        )
    _refuse(
        name,
        (request.language is not None, NO_LANGUAGE),
        (
            request.target is not None,
            "reads texts and explains every token of its answer: it takes no target class.",
        ),
        (
            request.baseline != "black",
            "reads texts, whose gradients are integrated from zero embeddings: it takes no "
            "baseline.",
        ),
        *_of_causes(request, causes),
        (request.reference is not None and not translates, NO_REFERENCE),
    )
    if request.also and request.word is None:
        raise UsageError("also gives more sentences with a word: give the word, too.")
    if request.word is not None and not request.word.strip():
        raise UsageError("The word is empty: give one that stands in the text.")
    return given


def _of_causes(request: LookRequest, causes: bool) -> list[tuple[bool, str]]:
    asked = request.instead is not None or request.why is not None
    return [
        (
            asked and not causes,
            "is no translator or classifier of images: leave `instead` and `why` out.",
        ),
        (
            request.why_not is not None and request.why is None,
            "compares two answers: give `why`, too, or leave `why_not` out.",
        ),
    ]


def _refuse(name: str, *rules: tuple[bool, str]) -> None:
    for applies, message in rules:
        if applies:
            raise UsageError(f"{name} {message}")
