"""Score a classifier once and again, for the worth of its heads."""

from typing import cast

import numpy as np

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.heads_request import HeadsRequest
from manyheads.data.even_sample import evenly_spaced
from manyheads.data.images.pixels import Pixels, predict_all_logits
from manyheads.errors import UsageError
from manyheads.measure.head_worth import Scorer
from manyheads.measure.score import images_to_measure
from manyheads.measure.text_metrics import Statistics
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.classify.recipe import ClassifyRecipe


def scorer(classifier: Classifier, request: HeadsRequest) -> Scorer:
    """Classify, and count the right answers in percent."""
    recipe = cast(ClassifyRecipe, classifier.folder.recipe)
    asked = EvaluateRequest(data=request.data, remote=request.remote, split=request.split)
    images, head = images_to_measure(recipe, asked)
    if images.multi_label:
        raise UsageError("Heads are measured by accuracy, which several labels an image have not.")
    images = images.select(evenly_spaced(len(images), request.limit))
    pixels = Pixels(images, classifier.preprocessing)

    def score() -> Statistics:
        right = predict_all_logits(classifier.model, pixels).argmax(dim=1).numpy() == images.labels
        rows = np.stack([right.astype(float), np.ones(len(right))], axis=1)
        return Statistics(rows, lambda sums: float(100 * sums[0] / sums[1]), "accuracy")

    return Scorer("accuracy", head["data"], len(images), score)
