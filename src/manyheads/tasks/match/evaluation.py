"""Measuring matchers: recall of images by texts, and of texts by images."""

from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.errors import DataError
from manyheads.fit.training_images import Pixels
from manyheads.measure.score import Line, heading, refuse_report, scored
from manyheads.measure.text_metrics import Score
from manyheads.recipe_data.caption_data import CaptionData, CaptionRecipe
from manyheads.recipe_data.caption_splits import (
    captioned_split,
    read_captioned,
    read_given,
)
from manyheads.tasks.match.predictor import Matcher
from manyheads.tasks.match.recipe import MatchRecipe
from manyheads.tasks.match.task import Queries, image_vectors, plain, queries, recalls

SIGNATURE = "recall, any right one of the first"


def matches_to_measure(
    recipe: CaptionRecipe, asked: CaptionData, request: EvaluateRequest
) -> tuple[CaptionedImages, CaptionedImages | None, Line]:
    """Read the images of a request with their queries, and more images to search among.

    Returns:
        Both, and the beginning of the line about them.
    """
    if request.data is None:
        found = queries_of(captioned_split(request.split, recipe), request.split, asked)
    else:
        found = read_given(request.data, asked)
    head = heading(found.images.origin, found.images.hashes, request, recipe.data)
    if request.among is None:
        return found, None, head
    try:
        among = read_given(request.among, asked)
    except DataError as error:
        raise DataError(
            f"{error} Images for `among` need texts, too, as those with the text that is searched "
            "for count as right: name a table with columns of texts, or a folder with a .txt file "
            "beside each image; or leave `among` out."
        ) from None
    return found, among, head | {"among": request.among}


def queries_of(found: CaptionedImages, split: str, asked: CaptionData) -> CaptionedImages:
    """Return the same images with the texts of the queries."""
    name = getattr(asked, split) or asked.train  # held out of it
    other = read_captioned(name, asked)
    numbers = {each: number for number, each in enumerate(other.images.names)}
    return other.select(np.array([numbers[each] for each in found.images.names], dtype=int))


def measure_matches(
    matcher: Matcher, asked: CaptionedImages, among: CaptionedImages | None
) -> tuple[dict[str, Score], dict[str, Any]]:
    """Search for every text and every image.

    Args:
        matcher: the model.
        asked: images, and the texts that ask for them.
        among: images to search among, which may be those of `asked` too: of equal texts and equal
            pixels each counts as right. None: those of `asked` alone.
    """
    given = queries(asked)
    with matcher.engine.running():
        vectors = image_vectors(matcher.model, Pixels(asked.images, matcher.preprocessing))
        if among is not None:
            others = image_vectors(matcher.model, Pixels(among.images, matcher.preprocessing))
            vectors, given = _joined(vectors, others, given, queries(among))
        found = recalls(matcher.model, matcher.tokenizer, vectors, given, matcher.longest)
    scores = {name: Score(value, SIGNATURE) for name, value in found.items()}
    return scores, {"images": len(asked), "texts": len(given.texts), "searched": len(vectors)}


def _joined(
    vectors: torch.Tensor, others: torch.Tensor, asked: Queries, among: Queries
) -> tuple[torch.Tensor, Queries]:
    """Search among other images: alone, if every text has one there; else among all."""
    theirs = {
        (language, plain(text)): images
        for text, language, images in zip(among.texts, among.languages, among.images, strict=True)
    }
    keys = [(a, plain(b)) for a, b in zip(asked.languages, asked.texts, strict=True)]
    if all(key in theirs for key in keys):
        return others, replace(asked, images=[theirs[key] for key in keys])
    right = [
        own | {len(vectors) + number for number in theirs.get(key, ())}
        for own, key in zip(asked.images, keys, strict=True)
    ]
    return torch.cat([vectors, others]), replace(asked, images=right)


def evaluate(predictor: Matcher, request: EvaluateRequest) -> dict[str, Any]:
    """Find images by texts and texts by images."""
    refuse_report(predictor.folder.name, request, matches=True)
    recipe = cast(MatchRecipe, predictor.folder.recipe)
    asked, among, head = matches_to_measure(recipe, recipe.data.asked, request)
    scores, more = measure_matches(predictor, asked, among)
    return head | scored(scores) | more
