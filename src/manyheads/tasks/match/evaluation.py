"""Measuring matchers: recall of images by texts, of texts by images; comparing engines."""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import numpy as np
import torch
from torch import Tensor

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.data.even_sample import limited
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_set import ImageSet
from manyheads.data.images.pixels import Pixels
from manyheads.engines.engine_parity import Parity
from manyheads.errors import DataError
from manyheads.measure.image_limits import keep_image_limits
from manyheads.measure.outputs import OutputRow, image_of
from manyheads.measure.parity_inputs import compare_engines, images_to_compare, relative_difference
from manyheads.measure.score import ROWS, Line, heading, refuse_report, scored
from manyheads.measure.text_metrics import Score
from manyheads.recipe_data.caption_data import CaptionData
from manyheads.recipe_data.caption_splits import captioned_split, read_captioned, read_given
from manyheads.tasks.match.predictor import Matcher
from manyheads.tasks.match.recipe import MatchRecipe
from manyheads.tasks.match.task import (
    RANKS,
    Queries,
    embed_texts,
    image_vectors,
    plain,
    queries,
    recalls,
    text_ranks,
)

SIGNATURE = "recall, any right one of the first"
NEXT = 3  # further texts of an image in a row
METRIC = f"text_to_image_{RANKS[0]}"


def matches_to_measure(
    recipe: MatchRecipe, request: EvaluateRequest
) -> tuple[CaptionedImages, CaptionedImages | None, Line]:
    """Read the images of a request with their queries, and more images to search among.

    Returns:
        Both, and the beginning of the line about them.
    """
    asked = recipe.data.asked
    if request.data is None:
        captions = queries_of(captioned_split(request.split, recipe), request.split, asked)
    else:
        captions = read_given(request.data, asked)
    head = heading(captions.images.origin, captions.images.hashes, request, recipe.data)
    captions = limited(captions, request.limit)
    if request.among is None:
        return captions, None, head
    try:
        among = read_given(request.among, asked)
    except DataError as error:
        raise DataError(
            f"{error} Images for `among` need texts, too, as those with the text that is searched "
            "for count as right: name a table with columns of texts, or a folder with a .txt file "
            "beside each image; or leave `among` out."
        ) from None
    return captions, among, head | {"among": request.among}


def queries_of(captions: CaptionedImages, split: str, asked: CaptionData) -> CaptionedImages:
    """Return the same images with the texts of the queries."""
    name = getattr(asked, split) or asked.train  # held out of it
    other = read_captioned(name, asked)
    numbers = {each: number for number, each in enumerate(other.images.names)}
    return other.select(np.array([numbers[each] for each in captions.images.names], dtype=int))


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


def evaluate(predictor: Matcher, request: EvaluateRequest) -> Line:
    """Find images by texts and texts by images: all of one set, or among others."""
    refuse_report(predictor.folder.name, request, matches=True)
    recipe = cast(MatchRecipe, predictor.folder.recipe)
    asked, among, head = matches_to_measure(recipe, request)
    texts, model = queries(asked), predictor.model
    own = vectors = image_vectors(model, Pixels(asked.images, predictor.preprocessing))
    keep_image_limits(predictor, request, lambda: captioned_split("train", recipe).images)
    if among is not None:
        others = image_vectors(model, Pixels(among.images, predictor.preprocessing))
        vectors, texts = _joined(vectors, others, texts, queries(among))
    written = embed_texts(model, predictor.tokenizer, texts.texts, predictor.longest)
    shares = recalls(vectors, written, texts)
    counts = {"images": len(asked), "texts": len(texts.texts), "searched": len(vectors)}
    line = head | scored({name: Score(v, SIGNATURE) for name, v in shares.items()}) | counts
    if request.outputs is not None:
        line[ROWS] = list(_rows(own, written, asked.images, queries(asked)))
    return line


def _rows(vectors: Tensor, texts: Tensor, images: ImageSet, asked: Queries) -> Iterator[OutputRow]:
    """Give each image with the text that is nearest; the score is 100 / rank of its first text."""
    own = asked.by_image()
    ranks = text_ranks(texts, vectors[list(own)], list(own.values()))
    for (image, right), rank in zip(own.items(), ranks.tolist(), strict=True):
        nearest = (texts @ vectors[image]).topk(min(1 + NEXT, len(texts)))
        cosines, found = (each.tolist() for each in nearest)
        yield OutputRow(
            input=images.names[image],
            truth=[asked.texts[n] for n in sorted(right)],
            answer=asked.texts[found[0]],
            score=100 / (1 + rank),
            right=found[0] in right,
            others=[(asked.texts[n], c) for n, c in zip(found[1:], cosines[1:], strict=True)],
            image=image_of(images, image),
        )


def parity(reference: Matcher, exported: Matcher, request: ParityRequest) -> Parity:
    """Compare the vectors of the same images and texts, and what they find."""
    recipe = cast(MatchRecipe, reference.folder.recipe)
    captions, head = images_to_compare(lambda own: matches_to_measure(recipe, own)[::2], request)
    asked = queries(captions)

    def vectors(each: Matcher) -> tuple[Tensor, Tensor]:
        images = image_vectors(each.model, Pixels(captions.images, each.preprocessing))
        return images, embed_texts(each.model, each.tokenizer, asked.texts, each.longest)

    return compare_engines(
        reference,
        exported,
        vectors,
        # of each text the nearest image
        answers=lambda found: (found[1] @ found[0].T).argmax(dim=1).tolist(),
        difference=lambda *both: float(np.max(list(map(relative_difference, *both)))),  # nan stays
        score=lambda found: recalls(*found, asked)[METRIC],
        metric=METRIC,
        inputs=len(captions),
        compared="vectors",
        data=head["data"],
    )
