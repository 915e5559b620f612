"""Measuring a stored model."""

from typing import Any, cast

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.data.images.pixels import Pixels
from manyheads.measure.outputs import OutputRow, image_of
from manyheads.measure.score import ROWS, images_to_measure, refuse_report, scored
from manyheads.measure.text_metrics import Score
from manyheads.tasks.reconstruct.predictor import Reconstruction
from manyheads.tasks.reconstruct.recipe import ReconstructRecipe
from manyheads.tasks.reconstruct.task import all_distances


def evaluate(predictor: Reconstruction, request: EvaluateRequest) -> dict[str, Any]:
    """Measure the distance between hidden patches and what was drawn in their place."""
    refuse_report(predictor.folder.name, request)
    recipe = cast(ReconstructRecipe, predictor.folder.recipe)
    images, head = images_to_measure(recipe, request)
    masked, pixels = recipe.train.masked, Pixels(images, predictor.preprocessing)
    losses = all_distances(predictor.model, pixels, recipe.patch, masked)
    loss = float(losses.mean())
    signature = f"mean L1 distance on hidden pixels, normalised, {masked:.0%} hidden"
    line = head | {"images": len(images)} | scored({"loss": Score(loss, signature)})
    if request.outputs is not None:
        line[ROWS] = [
            OutputRow(
                input=images.names[index],
                truth=(),  # the image itself
                answer=f"distance {each:.4f}",
                score=100 / (1 + each),
                right=True,
                image=image_of(images, index),
            )
            for index, each in enumerate(losses.tolist())
        ]
    return line
