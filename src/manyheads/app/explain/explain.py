"""Join what a recorder kept of a translator or a classifier to tokens and patches."""

from dataclasses import replace
from math import exp
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from manyheads.app.explain.figures import figures_of_image, figures_of_text, watched
from manyheads.app.explain.image_overlays import explain_class
from manyheads.app.explain.reference import teacher_forcing
from manyheads.app.explain.text_overlays import Reading, explain_reading
from manyheads.app.predictors.classifier import Classifier
from manyheads.app.predictors.image_inputs import ImageInput, opened
from manyheads.app.predictors.text_reader import refuse_empty
from manyheads.app.predictors.translator import Translator
from manyheads.data.images.image_file import ImageContent
from manyheads.data.images.image_set import Preprocessing
from manyheads.errors import UsageError, nearest
from manyheads.lens.labels import labels
from manyheads.lens.measures.alignment_head import alignment_view
from manyheads.lens.measures.token_losses import loss_table
from manyheads.lens.thumbnail import thumbnail
from manyheads.lens.trace.decoding import decoded
from manyheads.lens.trace.grids import Crop
from manyheads.lens.trace.shapes import ShapeLine, walk
from manyheads.lens.view.image_view import ImageView, image_view
from manyheads.lens.view.text_view import Span, StepView, TextView, text_view
from manyheads.nn.recording.trace import Trace, record
from manyheads.tasks.decoding import Translation
from manyheads.tasks.special_ids import special_ids
from manyheads.tasks.token_details import spans
from manyheads.tasks.word_alignment import reads_source


def explain_text(
    translator: Translator, text: str, *, integrated: bool | None = None
) -> tuple[str, TextView]:
    """Translate a text, then run the model once over text and translation with a recorder open.

    Gradients are integrated if `integrated` is True, or None and the cost is low. Returns the
    translation and its view.
    """
    with record() as search:
        source, target, best = _translated(translator, text)
    read, wanted = target[:, :-1], target[:, 1:]
    with watched(translator.model) as seen:
        logits = translator.model(source, read)
    log_chances = logits.float().log_softmax(dim=-1).gather(2, wanted[..., None])
    chances = log_chances.exp()[0, :, 0].tolist()
    sources, targets = translator.tokenizers
    start = targets.piece(special_ids(translator.model).start)
    source_spans = [*spans(sources, text), None]
    output_spans: list[Span | None] = [
        [token.begin, token.end] if token.begin < token.end else None
        for token in best.details or []
    ]
    output_spans.append(None)
    view = text_view(
        seen.trace,
        source=[sources.piece(token) for token in source[0].tolist()],
        output=[targets.piece(token) for token in wanted[0].tolist()],
        probabilities=chances,
        start=start,
        source_spans=source_spans,
        output_spans=output_spans,
    )
    reading = Reading(
        translator.model,
        source,
        wanted[0].tolist(),
        lambda ids: translator.model(ids, read.expand(len(ids), -1)),
        view.source,
        view.output,
        source_spans,
        output_spans,
    )
    view = explained(view, reading, integrated=integrated)
    figures = figures_of_text(
        seen,
        names={
            "encoder": labels(view.source),
            "decoder": labels([start, *view.output[:-1]]),
        },
        outputs=labels(view.output),
        gates=view.gates,
        pieces=(sources.piece, targets.piece),
    )
    costs = loss_table(
        view.output,
        chances,  # those of the view are rounded, and the loss of 0 is infinite
        title="How surprised the model was by each word",
        given="given the source and those before it",
    )
    aligned = (
        alignment_view(seen.trace, translator.alignment, len(best.tokens), len(view.source) - 1)
        if reads_source(translator.model)
        else None
    )
    return best.text, replace(
        view,
        figures=[costs, *figures],
        alignment=aligned,
        steps=_steps(translator, search, best),
    )


def _steps(translator: Translator, search: Trace, best: Translation) -> list[StepView]:
    """List the candidates of the search in every step."""
    name = translator.tokenizers.target.piece
    tokens = [*best.tokens, *([special_ids(translator.model).end] if best.finished else [])]
    found = decoded(search, tokens)
    return [
        StepView(
            name(token),
            round(exp(log_probability), 6),
            [(name(each.token), round(each.probability, 6)) for each in candidates],
        )
        for token, log_probability, candidates in zip(
            tokens, best.token_log_probabilities, found.candidates, strict=True
        )
    ]


def explained(view: TextView, reading: Reading, *, integrated: bool | None) -> TextView:
    """Add overlays that explain the output tokens to a view."""
    overlays, notes = explain_reading(reading, integrated=integrated)
    return replace(view, overlays=overlays, notes=[*view.notes, *notes])


def explain_image(
    classifier: Classifier,
    given: ImageInput,
    *,
    top: int = 5,
    target: str | None = None,
    baseline: str = "black",
    integrated: bool | None = None,
) -> tuple[ImageView, Tensor]:
    """Classify an image with a recorder open, and explain one class: by default the most likely.

    The view has the `top` classes and the explained one; of `baseline` see `explain_class`.
    Returns the view and the image, a large one smaller: (height, width) or (height, width, 3),
    0..255.
    """
    image = opened(given)
    with watched(classifier.model) as seen:
        (guesses,) = classifier.classify([image], top=len(classifier.labels))
    label = guesses[0].label if target is None else target
    if label not in classifier.labels:
        raise UsageError(
            f"{classifier.folder.name} has no class {label!r}{nearest(label, classifier.labels)}"
            f"Its classes: {', '.join(classifier.labels[:20])}"
            + (", ..." if len(classifier.labels) > 20 else ".")
        )
    device = next(classifier.model.parameters()).device
    pixels = classifier.pixels(image).to(device)
    images, black = classifier.preprocessing.normalise(torch.stack((pixels, 0 * pixels))).split(1)
    attributions, notes = explain_class(
        classifier.model,
        images,
        target=classifier.labels.index(label),
        label=label,
        baseline=baseline,
        black=black[0],
        integrated=integrated,
    )
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
        notes=notes,
    )
    return replace(view, figures=figures_of_image(seen)), thumbnail(torch.from_numpy(shown))


def shown_pixels(preprocessing: Preprocessing, image: ImageContent) -> np.ndarray:
    """Turn an image as the model saw it, uncropped, in colours that a screen has."""
    if isinstance(image, np.ndarray):  # of more bands than eyes have: their mean
        values = image.reshape(*image.shape[:2], -1).mean(axis=2, dtype=np.float32)
        return np.rint(255 * values / max(values.max(), 1e-9)).clip(0, 255).astype(np.uint8)
    shown = preprocessing.upright(image)
    if shown.mode == "RGBA":
        shown = Image.alpha_composite(Image.new("RGBA", shown.size, "white"), shown)
    if shown.mode not in ("L", "RGB"):
        shown = shown.convert("RGB")
    return np.array(shown, dtype=np.uint8)


def shapes_of_text(translator: Translator, text: str) -> list[ShapeLine]:
    """Walk through a translation: encode once, then read the whole output under the mask."""
    source, target, _ = _translated(translator, text)
    with torch.inference_mode():
        return walk(translator.model, lambda: translator.model(source, target[:, :-1]))


def shapes_of_image(classifier: Classifier, path: Path) -> list[ShapeLine]:
    """Walk through the classification of an image."""
    return walk(classifier.model, lambda: classifier.classify([path]))


def _translated(translator: Translator, text: str) -> tuple[Tensor, Tensor, Translation]:
    refuse_empty(text)
    ((best, *_),) = translator.translate([text], details=True)
    return *teacher_forcing(translator, text, best.tokens), best
