"""Parity of classifiers."""

from functools import partial
from typing import Any, cast

from torch import Tensor

from manyheads.asks.export_request import ParityRequest
from manyheads.engines.engine_parity import Parity
from manyheads.fit.training_images import Pixels, predict_all_logits
from manyheads.measure.parity_inputs import (
    compare_engines,
    data_to_compare,
    examples_to_compare,
    relative_difference,
)
from manyheads.measure.score import images_to_measure
from manyheads.tasks.classify.class_metrics import mean_average_precision
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.classify.recipe import ClassifyRecipe


def parity(reference: Classifier, exported: Classifier, request: ParityRequest) -> Parity:
    """Classify the same images on both.

    Raises:
        NotFoundError: the recipe's validation data are not here, and nothing else was given.
    """
    recipe = cast(ClassifyRecipe, reference.folder.recipe)
    images, head = data_to_compare(partial(images_to_measure, recipe), request)
    images = images.relabel(reference.labels).select(examples_to_compare(len(images), request))

    def answers(logits: Tensor) -> list[Any]:
        return (logits.sigmoid() > 0.5 if images.multi_label else logits.argmax(dim=1)).tolist()

    def score(logits: Tensor) -> float:
        if images.multi_label:
            return mean_average_precision(logits.sigmoid().numpy(), images.labels)
        return 100 * float((logits.argmax(dim=1).numpy() == images.labels).mean())

    return compare_engines(
        reference,
        exported,
        lambda each: predict_all_logits(each.model, Pixels(images, each.preprocessing)),
        answers=answers,
        difference=relative_difference,
        score=score,
        metric="map" if images.multi_label else "accuracy",
        compared="logits",
        data=head["data"],
    )
