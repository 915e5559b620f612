"""Classifier metrics on an image set, their charts, and comparing engines."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.asks.heads_request import HeadsRequest
from manyheads.data.even_sample import evenly_spaced
from manyheads.data.images.image_set import ImageSet
from manyheads.data.images.pixels import Pixels, predict_all_logits
from manyheads.engines.engine_parity import Parity
from manyheads.errors import UsageError
from manyheads.measure.bootstrap import Interval
from manyheads.measure.head_worth import Scorer
from manyheads.measure.image_limits import keep_image_limits
from manyheads.measure.outputs import OutputRow, image_of
from manyheads.measure.parity_inputs import compare_engines, images_to_compare, relative_difference
from manyheads.measure.score import ROWS, images_to_measure, refuse_report, scored
from manyheads.measure.text_metrics import Score, Statistics
from manyheads.recipe_data.image_splits import image_split
from manyheads.tasks.classify.class_metrics import (
    BINS,
    bootstrap,
    calibration_error,
    confusion,
    mean_average_precision,
    micro_f1,
    per_class,
    per_label,
    reliability,
    top_k,
)
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.classify.recipe import ClassifyRecipe
from manyheads.train.class_losses import binary_cross_entropy

MOST = 50  # classes whose confusion matrix is logged
PLOTS = ("reliability.png", "confusion.png")
NEXT = 3  # further classes of an image in a row
CONFUSED = 5  # pairs of classes that are named


@dataclass(frozen=True)
class Measured:
    """Scores, the first is the headline, and the details for the log."""

    scores: dict[str, Score]
    details: dict[str, Any]
    logits: Tensor  # (image, class)


def measure(classifier: Classifier, images: ImageSet, *, mirrored: bool = False) -> Measured:
    """Measure a classifier on images whose classes are numbered as it numbers them."""
    pixels = Pixels(images, classifier.preprocessing)
    logits = predict_all_logits(classifier.model, pixels, mirrored=mirrored)
    measured = _several(logits, images) if images.multi_label else _single(logits, images)
    details = {"images": len(images)} | measured.details
    details |= {"left_out": len(lost)} if (lost := images.left_out) else {}
    return replace(measured, details=details)


def _single(logits: torch.Tensor, images: ImageSet) -> Measured:
    labels, classes = images.labels, images.classes
    log_p = F.log_softmax(logits, dim=-1).double().numpy()
    probabilities = np.exp(log_p)
    # As the model answers: the first of equally likely classes.
    guesses = logits.argmax(dim=1).numpy()
    right = guesses == labels
    matrix = confusion(guesses, labels, len(classes))
    bins = reliability(np.minimum(probabilities.max(axis=1), 1.0), right)
    losses = -np.take_along_axis(log_p, labels[:, None], axis=1)[:, 0]
    hits = {"accuracy": right}
    scores = {
        "accuracy": Score(
            100 * float(right.mean()), "share of images whose most probable class is right"
        )
    }
    if len(classes) > 5:
        hits["top5"] = top_k(probabilities, labels, 5)
        scores["top5"] = Score(
            100 * float(hits["top5"].mean()), "share whose class is among the five most probable"
        )
    scores["ece"] = Score(calibration_error(bins), f"expected calibration error, {BINS} bins")
    scores["loss"] = Score(float(losses.mean()), "mean cross-entropy, natural logarithm")
    details = {
        "intervals": {name: [*_share(each)[1:]] for name, each in hits.items()},
        "classes": {
            name: each._asdict() for name, each in zip(classes, per_class(matrix), strict=True)
        },
        "confused": _confused(matrix, classes),
        "reliability": [each._asdict() for each in bins],
    }
    if len(classes) <= MOST:
        details["confusion"] = matrix.tolist()
    return Measured(scores, details, logits)


def _several(logits: torch.Tensor, images: ImageSet) -> Measured:
    labels, classes = images.labels, images.classes
    probabilities = logits.double().sigmoid().numpy()
    chosen = (probabilities > 0.5).astype(int)
    each = per_label(chosen, labels)
    sums = binary_cross_entropy(logits, torch.from_numpy(labels), smoothing=0.0)
    interval = bootstrap(
        lambda rows: mean_average_precision(probabilities[rows], labels[rows]),
        len(labels),
        samples=200,
    )
    scores = {
        "map": Score(interval.value, "mean over the classes of their average precision"),
        "f1": Score(micro_f1(chosen, labels), "of all decisions together, at probability 1/2"),
        "f1_macro": Score(float(np.mean([one.f1 for one in each])), "mean over the classes"),
        "loss": Score(sums.sum.item() / sums.weight, "mean sigmoid loss, natural logarithm"),
    }
    details = {
        "intervals": {"map": [interval.low, interval.high]},
        "classes": {name: one._asdict() for name, one in zip(classes, each, strict=True)},
    }
    return Measured(scores, details, logits)


def _share(hits: np.ndarray) -> Interval:
    return bootstrap(lambda rows: 100 * hits[rows].mean(), len(hits))


def _confused(matrix: np.ndarray, classes: list[str]) -> list[dict[str, Any]]:
    wrong = matrix.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:CONFUSED]
    pairs = [divmod(int(place), len(classes)) for place in order]
    return [
        {"is": classes[row], "said": classes[column], "count": int(wrong[row, column])}
        for row, column in pairs
        if wrong[row, column]
    ]


def draw(line: dict[str, Any], folder: Path) -> list[Path]:
    """Draw what was measured: reliability.png, and confusion.png of up to 50 classes.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    from manyheads.lens.plot.charts import draw_confusion, draw_reliability

    drawn = []
    if "reliability" in line:
        drawn.append(folder / PLOTS[0])
        draw_reliability(line["reliability"], line["all"]["ece"]["value"], drawn[-1])
    if "confusion" in line:
        drawn.append(folder / PLOTS[1])
        draw_confusion(np.array(line["confusion"]), list(line["classes"]), drawn[-1])
    return drawn


def evaluate(predictor: Classifier, request: EvaluateRequest) -> dict[str, Any]:
    """Score classes: accuracy and calibration, or average precision of several labels."""
    refuse_report(predictor.folder.name, request, classifies=True)
    recipe = cast(ClassifyRecipe, predictor.folder.recipe)
    images, head = images_to_measure(recipe, request)
    images = images.relabel(predictor.labels)
    measured = measure(predictor, images, mirrored=request.mirrored)
    keep_image_limits(predictor, request, partial(image_split, "train", recipe))
    if request.mirrored:  # another measure of the same data, wherever scores are listed
        head |= {"data": f"{head['data']}, mirrored", "mirrored": True}
    rows = {ROWS: list(_rows(measured.logits, images))} if request.outputs is not None else {}
    return head | scored(measured.scores) | measured.details | rows


def _rows(logits: Tensor, images: ImageSet) -> Iterator[OutputRow]:
    """Give each image with its classes; the score is the probability of what is right, in percent.

    Of several labels it is the mean over them, of what each is: there, or not there.
    """
    names, several = images.classes, images.multi_label
    for index, own in enumerate(logits.double()):
        p = own.sigmoid() if several else own.log_softmax(dim=0).exp()
        values, places = (each.tolist() for each in p.topk(min(NEXT + 1, len(p))))
        if several:
            label = torch.from_numpy(images.labels[index]).bool()
            truth = "; ".join(n for n, there in zip(names, label.tolist(), strict=True) if there)
            answer = "; ".join(n for n, value in zip(names, p.tolist(), strict=True) if value > 0.5)
            score, probability = torch.where(label, p, 1 - p).mean(), p.maximum(1 - p).mean()
            first = 0
        else:
            truth, answer = names[images.labels[index]], names[places[0]]
            score, probability, first = p[images.labels[index]], p[places[0]], 1
        yield OutputRow(
            input=images.names[index],
            truth=[truth],
            answer=answer,
            score=100 * float(score),
            right=truth == answer,
            probability=float(probability),
            others=[(names[c], v) for c, v in zip(places[first:], values[first:], strict=True)],
            image=image_of(images, index),
        )


def statistics(
    predictor: Classifier, request: EvaluateRequest
) -> tuple[dict[str, Any], dict[str, Statistics]]:
    """Return what scores are computed from, for each image; nothing with several classes each."""
    images, head = images_to_measure(cast(ClassifyRecipe, predictor.folder.recipe), request)
    images = images.relabel(predictor.labels)
    if images.multi_label:
        return head, {}
    logits = predict_all_logits(predictor.model, Pixels(images, predictor.preprocessing))
    labels = torch.from_numpy(images.labels)
    right = (logits.argmax(dim=1) == labels).double().numpy()
    losses = F.nll_loss(F.log_softmax(logits, dim=-1), labels, reduction="none").double().numpy()
    return head, {
        "accuracy": Statistics.mean(100 * right, "share of images whose class is right"),
        "loss": Statistics.mean(losses, "mean cross-entropy, natural logarithm"),
    }


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
        return Statistics.mean(100.0 * right, "accuracy")

    return Scorer("accuracy", head["data"], len(images), score)


def parity(reference: Classifier, exported: Classifier, request: ParityRequest) -> Parity:
    """Classify the same images on both.

    Raises:
        NotFoundError: the recipe's validation data are not here, and nothing else was given.
    """
    recipe = cast(ClassifyRecipe, reference.folder.recipe)
    images, head = images_to_compare(partial(images_to_measure, recipe), request)
    images = images.relabel(reference.labels)

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
