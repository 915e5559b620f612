"""Parity of captioners."""

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
    data_to_compare,
    examples_to_compare,
    run_both,
)
from manyheads.tasks.caption.evaluation import captions_to_measure
from manyheads.tasks.caption.predictor import Captioner
from manyheads.tasks.caption.task import caption, caption_scores, language_prefix, references

SCORED = 64  # captions whose tokens are scored: every token of each is compared


def parity(reference: Captioner, exported: Captioner, request: ParityRequest) -> Parity:
    """Write texts for the same images on both, and score the tokens of given texts."""
    recipe: Any = reference.folder.recipe
    captions, head = data_to_compare(lambda given: captions_to_measure(recipe, given), request)
    captions = captions.select(examples_to_compare(len(captions), request))
    right = references(captions)
    pixels = Pixels(captions.images, reference.preprocessing)

    def write(each: Captioner) -> list[str]:
        found = caption(each.model, each.tokenizer, pixels, list(right), each.decode)
        return [best.text for best, *_ in found]

    ours, theirs, seconds = run_both(reference, exported, write)
    metric = recipe.evaluate.metrics[0]
    before, after = (
        caption_scores(each, right, (metric,))[metric].value for each in (ours, theirs)
    )
    some = [list(right)[n] for n in evenly_spaced(len(right), SCORED)]
    targets = [
        [*language_prefix(reference.tokenizer, key[1]), *reference.tokenizer.encode(right[key])[0]]
        for key in some
    ]
    chosen = pixels[np.array([image for image, _ in some])]
    (first, largest), (second, _) = (
        _token_scores(each, chosen, targets) for each in (reference, exported)
    )
    return Parity(
        data=head["data"],
        inputs=len(right),
        compared="log-probabilities of tokens",
        difference=float((first - second).abs().max() / largest),
        changed=float(np.mean([a != b for a, b in zip(ours, theirs, strict=True)])),
        metric=metric,
        before=before,
        after=after,
        seconds=seconds,
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
