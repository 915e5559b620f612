"""Parity of matchers of images and texts."""

from typing import cast

import numpy as np
from torch import Tensor

from manyheads.asks.export_request import ParityRequest
from manyheads.engines.engine_parity import Parity
from manyheads.fit.training_images import Pixels
from manyheads.measure.parity_inputs import (
    compare_engines,
    data_to_compare,
    examples_to_compare,
    relative_difference,
)
from manyheads.tasks.match.evaluation import matches_to_measure
from manyheads.tasks.match.predictor import Matcher
from manyheads.tasks.match.recipe import MatchRecipe
from manyheads.tasks.match.task import RANKS, embed_texts, image_vectors, queries, ranked_recalls

METRIC = f"text_to_image_{RANKS[0]}"


def parity(reference: Matcher, exported: Matcher, request: ParityRequest) -> Parity:
    """Compare the vectors of the same images and texts, and what they find."""
    recipe = cast(MatchRecipe, reference.folder.recipe)
    captions, head = data_to_compare(
        lambda wanted: matches_to_measure(recipe, recipe.data.asked, wanted)[::2], request
    )
    captions = captions.select(examples_to_compare(len(captions), request))
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
        score=lambda found: ranked_recalls(*found, asked)[METRIC],
        metric=METRIC,
        inputs=len(captions),
        compared="vectors",
        data=head["data"],
    )
