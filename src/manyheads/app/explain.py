"""Look inside: join what a recorder kept to the words and patches that people know."""

from dataclasses import replace
from math import exp
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from manyheads.app.figures import figures_of_picture, figures_of_text, watched
from manyheads.app.picture_overlays import explain_picture
from manyheads.app.predict import Classifier, Translator
from manyheads.app.text_overlays import Reading, explain_reading
from manyheads.data.batches import pad
from manyheads.data.images import Preprocessing
from manyheads.data.pictures import Picture, open_picture
from manyheads.errors import UsageError, nearest
from manyheads.lens.alignment import AlignmentView, alignment_view
from manyheads.lens.decoding import decoded
from manyheads.lens.grids import Crop
from manyheads.lens.labels import labels
from manyheads.lens.losses import loss_table
from manyheads.lens.picture import ImageView, image_view
from manyheads.lens.shapes import ShapeLine, walk
from manyheads.lens.view import Span, StepView, TextView, text_view
from manyheads.nn.trace import Trace, record
from manyheads.tasks.alignment import reads_source
from manyheads.tasks.decoding import Translation, special_ids
from manyheads.tasks.details import spans


def explain_text(
    translator: Translator, text: str, *, integrated: bool | None = None
) -> tuple[str, TextView]:
    """Translate a text, then run the model once over text and translation with a recorder open.

    Args:
        translator: the model.
        text: to translate.
        integrated: whether to integrate gradients; None: where it costs little.

    Returns:
        The translation, and what there is to see.

    Raises:
        UsageError: the text is empty.
    """
    with record() as search:
        source, target, best = _translated(translator, text)
    read, wanted = target[:, :-1], target[:, 1:]
    with watched(translator.model) as seen:
        logits = translator.model(source, read)
    log_chances = logits.float().log_softmax(dim=-1).gather(2, wanted[..., None])
    chances = log_chances.exp()[0, :, 0].tolist()
    sources, targets = translator.tokenizers
    ids = special_ids(translator.model)
    source_spans = [*spans(sources, text), None]
    output_spans = [*_spans_of_output(best), None]
    view = text_view(
        seen.trace,
        source=[sources.piece(token) for token in source[0].tolist()],
        output=[targets.piece(token) for token in wanted[0].tolist()],
        probabilities=chances,
        start=targets.piece(ids.start),
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
            "decoder": labels([targets.piece(ids.start), *view.output[:-1]]),
        },
        outputs=labels(view.output),
        gates=view.gates,
        pieces=(sources.piece, targets.piece),
    )
    costs = loss_table(
        view.output,
        chances,  # those of the view are rounded, and the loss of 0 is infinite
        title="What the model's own translation costs",
        given="given the source and those before it",
    )
    return best.text, replace(
        view,
        figures=[costs, *figures],
        alignment=_alignment(translator, seen.trace, best, len(view.source)),
        steps=_steps(translator, search, best),
    )


def _alignment(
    translator: Translator, trace: Trace, best: Translation, sources: int
) -> AlignmentView | None:
    """Say which source token each output token comes from, if the model attends to the source."""
    if not reads_source(translator.model):
        return None
    return alignment_view(trace, translator.alignment, len(best.tokens), sources - 1)


def _steps(translator: Translator, search: Trace, best: Translation) -> list[StepView]:
    """Say what the search might have chosen in every step."""
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
    """Add to a view what explains its output tokens."""
    overlays, notes = explain_reading(reading, integrated=integrated)
    return replace(view, overlays=overlays, notes=[*view.notes, *notes])


def explain_image(
    classifier: Classifier,
    path: Path,
    *,
    top: int = 5,
    target: str | None = None,
    baseline: str = "black",
    integrated: bool | None = None,
) -> tuple[ImageView, torch.Tensor]:
    """Classify a picture with a recorder open, and explain one class.

    Args:
        classifier: the model.
        path: of the picture.
        top: classes with their probabilities, beside that of the explained one.
        target: the class that is explained; the likeliest if None.
        baseline: what gradients are integrated from: "black", "mean" or "blur".
        integrated: whether to integrate gradients; None: where it costs little.

    Returns:
        What there is to see, and the picture itself: (height, width) or (height, width, 3), 0..255.

    Raises:
        UsageError: there is no such class.
    """
    picture = open_picture(path)
    with watched(classifier.model) as seen:
        (guesses,) = classifier.classify([picture], top=len(classifier.labels))
    label = guesses[0].label if target is None else target
    if label not in classifier.labels:
        raise UsageError(
            f"{classifier.folder.name} knows no class {label!r}{nearest(label, classifier.labels)}"
            f"Its classes: {', '.join(classifier.labels[:20])}"
            + (", ..." if len(classifier.labels) > 20 else ".")
        )
    device = next(classifier.model.parameters()).device
    pixels = classifier.pixels(picture).to(device)
    images, black = classifier.preprocessing.normalise(torch.stack((pixels, 0 * pixels))).split(1)
    attributions, notes = explain_picture(
        classifier.model,
        images,
        target=classifier.labels.index(label),
        label=label,
        baseline=baseline,
        black=black[0],
        integrated=integrated,
    )
    shown = _shown(classifier.preprocessing, picture)
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
    return replace(view, figures=figures_of_picture(seen)), torch.from_numpy(shown)


def _shown(preprocessing: Preprocessing, picture: Picture) -> np.ndarray:
    """Turn a picture as the model saw it, uncropped, in colours that a screen has."""
    if isinstance(picture, np.ndarray):  # of more bands than eyes have: their mean
        values = picture.reshape(*picture.shape[:2], -1).astype(np.float64).mean(axis=2)
        return np.rint(255 * values / max(values.max(), 1e-9)).clip(0, 255).astype(np.uint8)
    shown = preprocessing.upright(picture)
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
    """Walk through the classification of a picture."""
    return walk(classifier.model, lambda: classifier.classify([path]))


def _translated(
    translator: Translator, text: str
) -> tuple[torch.Tensor, torch.Tensor, Translation]:
    if not text.strip():
        raise UsageError("The text is empty: give a sentence to look at.")
    ((best, *_),) = translator.translate([text], details=True)
    (source,) = translator.tokenizers.source.encode([text])
    device = next(translator.model.parameters()).device
    ids = special_ids(translator.model)
    sources = pad([[*source, ids.end]], ids.pad).to(device)
    return sources, pad([[ids.start, *best.tokens, ids.end]], ids.pad).to(device), best


def _spans_of_output(best: Translation) -> list[Span | None]:
    assert best.details is not None
    return [[token.begin, token.end] if token.begin < token.end else None for token in best.details]
