"""Refuse what a model cannot look at, before it is run."""

import os
from pathlib import Path

from manyheads.asks.look_request import LookRequest
from manyheads.data.images.image_file import SUFFIXES
from manyheads.errors import NotFoundError, UsageError
from manyheads.predict.base_predictor import Predictor

# Parameters that only some models have a use for, and what others say.
NO_CAUSE = "is no translator or classifier of images: leave `instead` and `why` out."
CAUSES = {"instead": NO_CAUSE, "why": NO_CAUSE}
REFERENCE = {"reference": "does not translate, so it has no use for a reference: leave it out."}
LANGUAGE = {"language": "does not choose a language: leave it out."}
WORDS = dict.fromkeys(("word", "also"), "looks at images, which have no words: leave the word out.")
CLASSES = {
    "target": "reads texts and explains every token of its answer: it takes no target class.",
    "baseline": "reads texts, whose gradients are integrated from zero embeddings: it takes no "
    "baseline.",
}


def refuse_for_images(
    predictor: Predictor, request: LookRequest, *, writes: bool = False, causes: bool = False
) -> None:
    """Refuse anything but an image or the path of a file, and parameters of text models.

    `writes`: the model writes a text for the image, in a language, which may be one's own;
    `causes`: what makes its answer can be measured.
    """
    name, given = predictor.folder.name, request.given
    written = {} if writes else REFERENCE | LANGUAGE
    _refuse(name, request, ({} if causes else CAUSES) | written | WORDS)
    if not isinstance(given, str):
        return
    if request.kind == "text":
        raise UsageError(f"{name} looks at images, and was given a text: give an image.")
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
    others = ({} if causes else CAUSES) | ({} if translates else REFERENCE)
    _refuse(name, request, LANGUAGE | CLASSES | others)
    if request.also and request.word is None:
        raise UsageError("also gives more sentences with a word: give the word, too.")
    if request.word is not None and not request.word.strip():
        raise UsageError("The word is empty: give one that stands in the text.")
    return given


def _refuse(name: str, request: LookRequest, useless: dict[str, str]) -> None:
    for parameter, why in useless.items():
        if getattr(request, parameter) != LookRequest.model_fields[parameter].default:
            raise UsageError(f"{name} {why}")
    if request.why_not is not None and request.why is None:
        raise UsageError(f"{name} compares two answers: give `why`, too, or leave `why_not` out.")
