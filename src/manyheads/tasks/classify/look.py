"""What looking at the classification of an image shows."""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from manyheads.asks.look_request import LookRequest
from manyheads.lens.thumbnail import thumbnail
from manyheads.lens.trace.grids import Crop
from manyheads.lens.trace.module_shapes import ShapeLine, walk
from manyheads.lens.view.image_view import ImageView, image_view
from manyheads.looking.figures import figures_of_image
from manyheads.looking.image_overlays import explain_class, shown_pixels
from manyheads.looking.refusals import refuse_for_images
from manyheads.looking.untrained import compared, watch
from manyheads.predict.image_inputs import ImageInput, named, opened
from manyheads.predict.task_pipeline import Explanation
from manyheads.tasks.classify.cause import cause_figures, class_number
from manyheads.tasks.classify.predictor import Classifier


def explain_image(
    classifier: Classifier,
    given: ImageInput,
    *,
    top: int = 5,
    target: str | None = None,
    baseline: str = "black",
    integrated: bool | None = False,
    fresh: bool = False,
) -> tuple[ImageView, Tensor]:
    """Classify an image with a recorder open, and explain one class: by default the most likely.

    The view has the `top` classes and the explained one; of `baseline` see `explain_class`. If
    `fresh`, it is of the untrained model, and explains the trained one's most likely class.
    Returns the view and the image, a large one smaller: (height, width) or (height, width, 3),
    0..255.
    """
    image = opened(given)
    seen, (guesses,), (own,) = watch(
        classifier, lambda each: each.classify([image], top=len(each.labels)), fresh=fresh
    )
    label = own[0].label if target is None else target
    device = next(classifier.model.parameters()).device
    pixels = classifier.pixels(image).to(device)
    images, black = classifier.preprocessing.normalise(torch.stack((pixels, 0 * pixels))).split(1)
    attributions, notes = explain_class(
        seen.model,
        images,
        target=class_number(classifier, label),
        label=label,
        baseline=baseline,
        black=black[0],
        integrated=integrated,
    )
    remarks = () if fresh else classifier.notes(own[0], *classifier.unlike([pixels]))
    shown = shown_pixels(classifier.preprocessing, image)
    height, width = shown.shape[:2]
    view = image_view(
        seen.trace,
        width=width,
        height=height,
        classes=[
            (guess.label, guess.probability)
            for place, guess in enumerate(guesses)
            if place < top or guess.label == label
        ],
        crop=Crop(*classifier.preprocessing.box(width, height)),
        attributions=attributions,
        notes=[*remarks, *notes],
    )
    view = replace(compared(view, seen), figures=figures_of_image(seen))
    return view, thumbnail(torch.from_numpy(shown))


def look(predictor: Classifier, request: LookRequest) -> Explanation:
    """Show what speaks for a class."""
    refuse_for_images(predictor, request, causes=True)
    causes = cause_figures(predictor, request.given, request)
    view, pixels = explain_image(
        predictor,
        request.given,
        target=request.target,
        baseline=request.baseline,
        integrated=request.integrated,
        fresh=request.untrained,
    )
    view = replace(view, figures=[*causes, *view.figures])
    return Explanation({"path": named(request.given)}, view, pixels)


def shapes(predictor: Classifier, given: str) -> list[ShapeLine]:
    """Walk through the classification of an image."""
    refuse_for_images(predictor, LookRequest(given=given))
    return walk(predictor.model, lambda: predictor.classify([Path(given)]))
