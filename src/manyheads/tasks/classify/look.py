"""What looking at the classification of an image shows."""

from dataclasses import replace
from pathlib import Path

import torch

from manyheads.asks.look_request import LookRequest
from manyheads.errors import UsageError, nearest
from manyheads.lens.thumbnail import thumbnail
from manyheads.lens.trace.grids import Crop
from manyheads.lens.trace.module_shapes import ShapeLine, walk
from manyheads.lens.view.image_view import image_view
from manyheads.looking.figures import figures_of_image, watched
from manyheads.looking.image_overlays import explain_class, shown_pixels
from manyheads.looking.refusals import refuse_for_images
from manyheads.predict.image_inputs import named, opened
from manyheads.predict.task_pipeline import Explanation
from manyheads.tasks.classify.predictor import Classifier

TOP = 5  # classes that are shown, besides the explained one


def look(predictor: Classifier, request: LookRequest) -> Explanation:
    """Classify an image with a recorder open, and explain one class: by default the most likely."""
    refuse_for_images(predictor, request)
    image = opened(request.given)
    with watched(predictor.model) as seen:
        (guesses,) = predictor.classify([image], top=len(predictor.labels))
    label = guesses[0].label if request.target is None else request.target
    if label not in predictor.labels:
        raise UsageError(
            f"{predictor.folder.name} has no class {label!r}{nearest(label, predictor.labels)}"
            f"Its classes: {', '.join(predictor.labels[:20])}"
            + (", ..." if len(predictor.labels) > 20 else ".")
        )
    device = next(predictor.model.parameters()).device
    pixels = predictor.pixels(image).to(device)
    images, black = predictor.preprocessing.normalise(torch.stack((pixels, 0 * pixels))).split(1)
    attributions, notes = explain_class(
        predictor.model,
        images,
        target=predictor.labels.index(label),
        label=label,
        baseline=request.baseline,
        black=black[0],
        integrated=request.integrated,
    )
    shown = shown_pixels(predictor.preprocessing, image)
    height, width = shown.shape[:2]
    view = image_view(
        seen.trace,
        width=width,
        height=height,
        classes=[
            (guess.label, guess.probability)
            for place, guess in enumerate(guesses)
            if place < TOP or guess.label == label
        ],
        crop=Crop(*predictor.preprocessing.box(width, height)),
        attributions=attributions,
        notes=notes,
    )
    view = replace(view, figures=figures_of_image(seen))
    path = {"path": named(request.given)}
    return Explanation(path, view, thumbnail(torch.from_numpy(shown)))


def shapes(predictor: Classifier, given: str) -> list[ShapeLine]:
    """Walk through the classification of an image."""
    refuse_for_images(predictor, LookRequest(given=given))
    return walk(predictor.model, lambda: predictor.classify([Path(given)]))
