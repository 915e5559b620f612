"""Measuring captions: one text for each image and language, scored by language."""

from collections.abc import Sequence
from typing import Any, cast

from manyheads.asks.evaluate_request import EvaluateRequest, TextMetric
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.fit.training_images import Pixels
from manyheads.measure.score import Line, heading, refuse_report, scored
from manyheads.measure.text_metrics import Score
from manyheads.project.paths import without_root
from manyheads.recipe_data.caption_splits import captioned_split, read_given
from manyheads.tasks.caption.predictor import Captioner
from manyheads.tasks.caption.recipe import CaptionRecipe
from manyheads.tasks.caption.task import caption, caption_scores, references

SHOWN = 10  # wrong captions in the log


def captions_to_measure(
    recipe: CaptionRecipe, request: EvaluateRequest
) -> tuple[CaptionedImages, Line]:
    """Read the images and captions of a request, and the beginning of the line about them."""
    if request.data is None:
        found = captioned_split(request.split, recipe)
    else:
        found = read_given(request.data, recipe.data)
    return found, heading(found.images.origin, found.images.hashes, request, recipe.data)


def measure_captions(
    captioner: Captioner,
    captions: CaptionedImages,
    metrics: Sequence[TextMetric],
    root: str | None,
) -> tuple[dict[str, Score], dict[str, Any]]:
    """Write a caption for each image in each language that it has captions in, and score them.

    Args:
        captioner: what is measured.
        captions: what it should write.
        metrics: of texts.
        root: the data root, which the log leaves out of names.

    Returns:
        The scores; and for the log, how many images and the first wrong captions.
    """
    right = references(captions)
    with captioner.engine.running():
        outputs = caption(
            captioner.model,
            captioner.tokenizer,
            Pixels(captions.images, captioner.preprocessing),
            list(right),
            captioner.decode,
        )
    texts = [best.text for best, *_ in outputs]
    wrong = [
        {"image": without_root(captions.images.names[image], root), "language": language}
        | {"output": text}
        | {"captions": known}
        for text, ((image, language), known) in zip(texts, right.items(), strict=True)
        if text not in known
    ]
    scores = caption_scores(texts, right, metrics)
    return scores, {"images": len(captions), "wrong": len(wrong), "examples": wrong[:SHOWN]}


def evaluate(predictor: Captioner, request: EvaluateRequest) -> dict[str, Any]:
    """Score one caption for each image and language."""
    refuse_report(predictor.folder.name, request)
    recipe = cast(CaptionRecipe, predictor.folder.recipe)
    captions, head = captions_to_measure(recipe, request)
    scores, more = measure_captions(predictor, captions, recipe.evaluate.metrics, recipe.data.root)
    return head | scored(scores) | more
