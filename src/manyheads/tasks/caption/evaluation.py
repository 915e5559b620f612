"""Measuring captions, scored by language, and comparing engines that write them."""

from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.data.batching.batches import pad
from manyheads.data.even_sample import evenly_spaced, limited
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.pixels import Pixels
from manyheads.engines.engine_parity import Parity
from manyheads.generation.special_ids import special_ids
from manyheads.measure.image_limits import keep_image_limits
from manyheads.measure.outputs import OutputRow, image_of, sentence_scores
from manyheads.measure.parity_inputs import compare_engines, images_to_compare
from manyheads.measure.score import ROWS, Line, heading, refuse_report, scored
from manyheads.project.paths import without_root
from manyheads.recipe_data.caption_splits import captioned_split, read_given
from manyheads.tasks.caption.predictor import Captioner
from manyheads.tasks.caption.recipe import CaptionRecipe
from manyheads.tasks.caption.task import caption, caption_scores, language_prefix, references

SHOWN = 10  # wrong captions in the log
SCORED = 64  # captions whose tokens are scored: every token of each is compared


def captions_to_measure(
    recipe: CaptionRecipe, request: EvaluateRequest
) -> tuple[CaptionedImages, Line]:
    """Read the images and captions of a request, and the beginning of the line about them."""
    if request.data is None:
        captions = captioned_split(request.split, recipe)
    else:
        captions = read_given(request.data, recipe.data)
    captions = limited(captions, request.limit)
    return captions, heading(captions.images.origin, captions.images.hashes, request, recipe.data)


def evaluate(predictor: Captioner, request: EvaluateRequest) -> Line:
    """Score one caption for each image in each language that it has captions in."""
    refuse_report(predictor.folder.name, request)
    recipe = cast(CaptionRecipe, predictor.folder.recipe)
    captions, head = captions_to_measure(recipe, request)
    right = references(captions)
    outputs = caption(
        predictor.model,
        predictor.tokenizer,
        Pixels(captions.images, predictor.preprocessing),
        list(right),
        predictor.decode,
    )
    keep_image_limits(predictor, request, lambda: captioned_split("train", recipe).images)
    texts = [best.text for best, *_ in outputs]
    names = [without_root(name, recipe.data.root) for name in captions.images.names]
    wrong = [
        {"image": names[image], "language": language, "output": text, "captions": known}
        for text, ((image, language), known) in zip(texts, right.items(), strict=True)
        if text not in known
    ]
    more: Line = {"images": len(captions), "wrong": len(wrong), "examples": wrong[:SHOWN]}
    if request.outputs is not None:
        good = sentence_scores(texts, list(right.values()))
        more[ROWS] = [
            OutputRow(
                input=captions.images.names[image],
                truth=known,
                answer=best.text,
                score=score,
                right=best.text in known,
                probability=best.mean_probability,
                language=language or None,
                image=image_of(captions.images, image),
            )
            for ((image, language), known), (best, *_), score in zip(
                right.items(), outputs, good, strict=True
            )
        ]
    return head | scored(caption_scores(texts, right, recipe.evaluate.metrics)) | more


def parity(reference: Captioner, exported: Captioner, request: ParityRequest) -> Parity:
    """Write texts for the same images on both, and score the tokens of given texts."""
    recipe: Any = reference.folder.recipe
    captions, head = images_to_compare(partial(captions_to_measure, recipe), request)
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
    logits = captioner.model(captioner.preprocessing.normalise(pixels), target[:, :-1]).float()
    wanted = target[:, 1:]
    scores = logits.log_softmax(dim=-1).gather(2, wanted[..., None])[..., 0]
    return scores[wanted != ids.pad], logits.abs().max()
