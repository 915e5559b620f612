"""Parity of captioners."""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manyheads.asks.export_request import ParityRequest
from manyheads.data.batching.batches import pad
from manyheads.data.even_sample import evenly_spaced
from manyheads.engines.engine_parity import Parity
from manyheads.fit.training_images import Pixels
from manyheads.generation.special_ids import special_ids
from manyheads.measure.parity_inputs import (
    compare_engines,
    data_to_compare,
    examples_to_compare,
)
from manyheads.tasks.caption.evaluation import captions_to_measure
from manyheads.tasks.caption.predictor import Captioner
from manyheads.tasks.caption.task import caption, caption_scores, language_prefix, references

SCORED = 64  # captions whose tokens are scored: every token of each is compared


def parity(reference: Captioner, exported: Captioner, request: ParityRequest) -> Parity:
    """Write texts for the same images on both, and score the tokens of given texts."""
    recipe: Any = reference.folder.recipe
    captions, head = data_to_compare(partial(captions_to_measure, recipe), request)
    captions = captions.select(examples_to_compare(len(captions), request))
    right = references(captions)
    pixels = Pixels(captions.images, reference.preprocessing)

    metric = recipe.evaluate.metrics[0]
    some = [list(right)[n] for n in evenly_spaced(len(right), SCORED)]
    targets = [
        [*language_prefix(reference.tokenizer, key[1]), *reference.tokenizer.encode(right[key])[0]]
        for key in some
    ]
    chosen = pixels[np.array([image for image, _ in some])]

    def write(each: Captioner) -> list[str]:
        written = caption(each.model, each.tokenizer, pixels, list(right), each.decode)
        return [best.text for best, *_ in written]

    def difference(*texts: list[str]) -> float:
        (first, largest), (second, _) = (
            _token_scores(each, chosen, targets) for each in (reference, exported)
        )
        return float((first - second).abs().max() / largest)

    return compare_engines(
        reference,
        exported,
        write,
        answers=list,
        difference=difference,
        score=lambda texts: caption_scores(texts, right, (metric,))[metric].value,
        metric=metric,
        compared="log-probabilities of tokens",
        data=head["data"],
    )


@torch.inference_mode()
def _token_scores(
    captioner: Captioner, pixels: Tensor, targets: list[list[int]]
) -> tuple[Tensor, Tensor]:
    """Log-probabilities of all tokens of given captions in a row, and the largest logit."""
    ids = special_ids(captioner.model)
    target = pad([[ids.start, *each, ids.end] for each in targets], ids.pad)
    images = captioner.preprocessing.normalise(pixels)
    found = captioner.model(images, target[:, :-1]).float()
    wanted = target[:, 1:]
    scores = found.log_softmax(dim=-1).gather(2, wanted[..., None])[..., 0]
    return scores[wanted != ids.pad], found.abs().max()
