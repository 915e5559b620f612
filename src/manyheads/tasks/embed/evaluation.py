"""Comparing engines that encode images."""

from functools import partial
from typing import cast

import torch
from torch import Tensor

from manyheads.asks.export_request import ParityRequest
from manyheads.data.images.pixels import Pixels, predict_all_logits
from manyheads.engines.engine_parity import Parity
from manyheads.measure.parity_inputs import compare_engines, images_to_compare, relative_difference
from manyheads.measure.score import images_to_measure
from manyheads.tasks.embed.predictor import Embedder
from manyheads.tasks.embed.recipe import EmbedRecipe


def parity(reference: Embedder, exported: Embedder, request: ParityRequest) -> Parity:
    """Compare the vectors of the same images, and which other image is nearest to each."""
    recipe = cast(EmbedRecipe, reference.folder.recipe)
    images, head = images_to_compare(partial(images_to_measure, recipe), request)
    return compare_engines(
        reference,
        exported,
        lambda each: predict_all_logits(each.model, Pixels(images, each.preprocessing)),
        answers=_nearest,
        difference=relative_difference,
        compared="vectors",
        data=head["data"],
    )


def _nearest(vectors: Tensor) -> list[int]:
    """Return the number of the other vector that is most similar to each."""
    unit = vectors.float() / vectors.float().norm(dim=1, keepdim=True)
    return (unit @ unit.T).fill_diagonal_(-torch.inf).argmax(dim=1).tolist()
