"""Why an image is of a class: another image in its place, or one class against another."""

from typing import Any

import torch
from torch import Tensor

from manyheads.asks.look_request import LookRequest
from manyheads.errors import UsageError, nearest
from manyheads.lens.cause.cause_figures import Columns, part_figures, patch_figures
from manyheads.lens.cause.contributions import contributions
from manyheads.lens.cause.patching import Run
from manyheads.lens.described_figures import figure
from manyheads.lens.panels import Figure
from manyheads.nn.recording.attention_record import AttentionRecord
from manyheads.nn.recording.token_grid import TokenGrid
from manyheads.nn.recording.trace import record
from manyheads.predict.image_inputs import ImageInput, opened
from manyheads.tasks.classify.predictor import Classifier

STACK = "encoder"


def cause_figures(classifier: Classifier, given: ImageInput, request: LookRequest) -> list[Figure]:
    """Show what the request asks for: `instead`, `why`."""
    if request.instead is None and request.why is None:
        return []
    image = _image(classifier, given)
    with torch.no_grad(), record(states=True) as trace:
        ranked = classifier.model(image)[0].argsort(descending=True).tolist()
    attended = (each for each in trace if isinstance(each, AttentionRecord))
    grid = next((each.key_grid for each in attended if each.layer_id.stack == STACK), None)
    if grid is None:
        raise UsageError(
            f"{classifier.folder.name} has no encoder over patches, so its parts cannot be "
            "changed: choose a ViT, a CCT or a hybrid."
        )
    figures = []
    if request.instead is not None:
        figures += _instead(classifier, image, ranked[0], grid, request.instead)
    if request.why is not None:
        why = class_number(classifier, request.why)
        if request.why_not == request.why:
            raise UsageError(f"{request.why!r} is the same class twice: name another.")
        rival = next(each for each in ranked if each != why)
        rival = rival if request.why_not is None else class_number(classifier, request.why_not)
        figures += _why(classifier, image, why, rival, grid)
    return figures


def _instead(
    classifier: Classifier, image: Tensor, own: int, grid: TokenGrid, given: str
) -> list[Figure]:
    other = _image(classifier, given)
    with torch.no_grad():
        answer = int(classifier.model(other)[0].argmax())
    if answer == own:
        raise UsageError(
            f"Both images are of the class {classifier.labels[own]!r}, so nothing makes a "
            "difference: give one of another class."
        )
    rows, columns = grid.shape
    patches = [f"{row + 1}, {column + 1}" for row in range(rows) for column in range(columns)]
    tokens = range(grid.count)
    shown = Columns([*grid.extra, *patches], [([each], [each]) for each in tokens], tokens)
    runs = [_run(classifier, each, own, answer) for each in (image, other)]
    question = f"{classifier.labels[answer]}, not {classifier.labels[own]}"
    return patch_figures(runs[0], runs[1], {STACK: shown}, question)


def _why(
    classifier: Classifier, image: Tensor, why: int, rival: int, grid: TokenGrid
) -> list[Figure]:
    run = _run(classifier, image, rival, why)
    found = contributions(lambda: run(1)[0])
    extra = len(grid.extra)
    groups = [*([n] for n in range(extra)), list(range(extra, grid.count))]
    question = f"{classifier.labels[why]}, not {classifier.labels[rival]}"
    figures = part_figures(found, [*grid.extra, "patches"], groups, question)
    if found.sources:
        sums: Any = sum(each.sum(dim=0) for each in found.sources.values())
        table = sums[extra:].view(grid.shape).tolist()
        values = [[round(value, 4) for value in row] for row in table]
        figures.insert(1, figure("parts-of-patches", {"question": question}, values=values))
    return figures


def _image(classifier: Classifier, given: ImageInput) -> Tensor:
    device = next(classifier.model.parameters()).device
    pixels = classifier.pixels(opened(given)).to(device)
    return classifier.preprocessing.normalise(pixels[None])


def class_number(classifier: Classifier, name: str) -> int:
    """Return the number of a class; refuse a name that no class has."""
    if name not in classifier.labels:
        raise UsageError(
            f"{classifier.folder.name} has no class {name!r}{nearest(name, classifier.labels)}"
            f"Its classes: {', '.join(classifier.labels[:20])}"
            + (", ..." if len(classifier.labels) > 20 else ".")
        )
    return classifier.labels.index(name)


def _run(classifier: Classifier, image: Tensor, first: int, second: int) -> Run:
    """Score an image by the logit of the second class less that of the first."""

    def run(rows: int) -> Tensor:
        logits: Tensor = classifier.model(image.expand(rows, -1, -1, -1)).float()
        return logits[:, second] - logits[:, first]

    return run
