"""Parity of classifiers."""

from typing import cast

from manyheads.asks.export_request import ParityRequest
from manyheads.engines.engine_parity import Parity
from manyheads.fit.training_images import Pixels, predict_all_logits
from manyheads.measure.parity_inputs import (
    data_to_compare,
    examples_to_compare,
    relative_difference,
    run_both,
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
    images, head = data_to_compare(lambda given: images_to_measure(recipe, given), request)
    images = images.relabel(reference.labels).select(examples_to_compare(len(images), request))
    ours, theirs, seconds = run_both(
        reference,
        exported,
        lambda each: predict_all_logits(each.model, Pixels(images, each.preprocessing)),
    )
    if images.multi_label:
        answers = [each.sigmoid() > 0.5 for each in (ours, theirs)]
        changed = (answers[0] != answers[1]).any(dim=1)
        metric = "map"
        before, after = (
            mean_average_precision(each.sigmoid().numpy(), images.labels) for each in (ours, theirs)
        )
    else:
        guesses = [each.argmax(dim=1) for each in (ours, theirs)]
        changed = guesses[0] != guesses[1]
        metric = "accuracy"
        before, after = (100 * float((each.numpy() == images.labels).mean()) for each in guesses)
    return Parity(
        data=head["data"],
        inputs=len(images),
        compared="logits",
        difference=relative_difference(ours, theirs),
        changed=float(changed.float().mean()),
        metric=metric,
        before=before,
        after=after,
        seconds=seconds,
    )
