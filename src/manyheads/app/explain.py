"""Look inside: join what a recorder kept to the words and patches that people know."""

from pathlib import Path

import torch

from manyheads.app.predict import Classifier, Translator
from manyheads.data.batches import pad
from manyheads.data.pictures import open_image
from manyheads.errors import UsageError
from manyheads.lens.shapes import ShapeLine, walk
from manyheads.lens.view import ImageView, TextView, image_view, text_view
from manyheads.models.vit import Vit
from manyheads.nn.trace import record
from manyheads.tasks.decoding import special_ids


def explain_text(translator: Translator, text: str) -> tuple[str, TextView]:
    """Translate a text, then run the model once over text and translation with a recorder open.

    Returns:
        The translation, and what there is to see.

    Raises:
        UsageError: the text is empty.
    """
    source, target, output = _translated(translator, text)
    with record() as trace, torch.inference_mode():
        logits = translator.model(source, target[:, :-1])
    wanted = target[:, 1:]
    probabilities = logits.float().log_softmax(dim=-1).exp().gather(2, wanted[..., None])
    sources, targets = translator.tokenizers
    ids = special_ids(translator.model)
    view = text_view(
        trace,
        source=[sources.piece(token) for token in source[0].tolist()],
        output=[targets.piece(token) for token in wanted[0].tolist()],
        probabilities=probabilities[0, :, 0].tolist(),
        start=targets.piece(ids.start),
    )
    return output, view


def explain_image(
    classifier: Classifier, path: Path, *, top: int = 5
) -> tuple[ImageView, torch.Tensor]:
    """Classify a picture with a recorder open.

    Returns:
        What there is to see, and the picture itself: (height, width) or (height, width, 3), 0..255.
    """
    model = classifier.model
    if not isinstance(model, Vit):
        raise UsageError(
            f"{classifier.folder.name} is a {type(model).__name__}, which has no attention to look "
            "at. Give a model of the ViT kind."
        )
    picture = open_image(path)
    preprocessing = classifier.preprocessing
    with record() as trace:
        (guesses,) = classifier.classify([picture], top=top)
    shown = preprocessing.upright(picture)
    left, upper, right, lower = preprocessing.box(*shown.size)
    rows, columns = model.config.grid
    high, wide = (lower - upper) / rows, (right - left) / columns
    boxes = [
        (
            left + column * wide,
            upper + row * high,
            left + (column + 1) * wide,
            upper + (row + 1) * high,
        )
        for row in range(rows)
        for column in range(columns)
    ]
    view = image_view(
        trace,
        width=shown.width,
        height=shown.height,
        boxes=boxes,
        grid=(rows, columns),
        classes=[(guess.label, guess.probability) for guess in guesses],
        class_token=model.pool.extra == 1,
    )
    values = torch.frombuffer(bytearray(shown.tobytes()), dtype=torch.uint8)
    return view, values.view(shown.height, shown.width, -1)


def shapes_of_text(translator: Translator, text: str) -> list[ShapeLine]:
    """Walk through a translation: encode once, then read the whole output under the mask."""
    source, target, _ = _translated(translator, text)
    with torch.inference_mode():
        return walk(translator.model, lambda: translator.model(source, target[:, :-1]))


def shapes_of_image(classifier: Classifier, path: Path) -> list[ShapeLine]:
    """Walk through the classification of a picture."""
    return walk(classifier.model, lambda: classifier.classify([path]))


def _translated(translator: Translator, text: str) -> tuple[torch.Tensor, torch.Tensor, str]:
    if not text.strip():
        raise UsageError("The text is empty: give a sentence to look at.")
    ((best, *_),) = translator.translate([text])
    (source,) = translator.tokenizers.source.encode([text])
    device = next(translator.model.parameters()).device
    ids = special_ids(translator.model)
    sources = pad([[*source, ids.end]], ids.pad).to(device)
    return sources, pad([[ids.start, *best.tokens, ids.end]], ids.pad).to(device), best.text
