"""Classifier metrics, computed from its probabilities (numpy, no model).

`probabilities` are (image, class); `labels` are (image,) class numbers, or (image, class) 0 or 1
if several classes may apply.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from manyheads.measure.bootstrap import Interval
from manyheads.streams import generator

BINS = 15  # of the reliability diagram (Guo et al. 2017)
SAMPLES = 1000


class Bin(NamedTuple):
    """Images whose top-1 probability is between two limits."""

    low: float
    high: float
    images: int
    confidence: float  # mean probability
    accuracy: float  # share of correct predictions


class ClassScore(NamedTuple):
    """Precision, recall and F1 of one class."""

    images: int
    precision: float
    recall: float
    f1: float


def top_k(probabilities: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Return for each image whether its class is among the top k.

    Of equally likely classes the first ranks higher, as in argmax; NaN is not a hit.
    """
    own = np.take_along_axis(probabilities, labels[:, None], axis=1)
    before = np.arange(probabilities.shape[1]) < labels[:, None]
    ahead = (probabilities > own) | ((probabilities == own) & before)
    return (ahead.sum(axis=1) < k) & ~np.isnan(own[:, 0])


def confusion(predictions: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Count images by true class (row) and predicted class (column)."""
    cells = np.bincount(labels * classes + predictions, minlength=classes * classes)
    return cells.reshape(classes, classes)


def per_class(matrix: np.ndarray) -> list[ClassScore]:
    """Compute precision, recall and F1 from a confusion matrix, in percent; 0 where undefined."""
    hits, rows, columns = np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)
    return [_class_score(*map(int, each)) for each in zip(hits, rows, columns, strict=True)]


def per_label(chosen: np.ndarray, labels: np.ndarray) -> list[ClassScore]:
    """The same for multi-label data: both arguments are (image, class) of 0 and 1."""
    hits = (chosen * labels).sum(axis=0)
    rows, columns = labels.sum(axis=0), chosen.sum(axis=0)
    return [_class_score(*map(int, each)) for each in zip(hits, rows, columns, strict=True)]


def _class_score(hits: int, positives: int, predicted: int) -> ClassScore:
    return ClassScore(
        positives,
        100 * hits / predicted if predicted else 0.0,
        100 * hits / positives if positives else 0.0,
        200 * hits / (positives + predicted) if positives + predicted else 0.0,
    )


def reliability(confidences: np.ndarray, right: np.ndarray, bins: int = BINS) -> list[Bin]:
    """Group predictions by confidence: (0, 1/bins], ...; empty bins are left out."""
    place = np.clip(np.ceil(confidences * bins).astype(int) - 1, 0, bins - 1)
    filled = []
    for number in range(bins):
        inside = place == number
        if inside.any():
            filled.append(
                Bin(
                    number / bins,
                    (number + 1) / bins,
                    int(inside.sum()),
                    float(confidences[inside].mean()),
                    float(right[inside].mean()),
                )
            )
    return filled


def calibration_error(bins: list[Bin]) -> float:
    """Expected calibration error in percent (Guo et al. 2017, section 3)."""
    total = sum(each.images for each in bins)
    return 100 * sum(e.images * abs(e.accuracy - e.confidence) for e in bins) / max(total, 1)


def average_precision(scores: np.ndarray, wanted: np.ndarray) -> float:
    """The mean of the precision at each positive image, ranked by score.

    As scikit-learn's `average_precision_score`: equal scores count as one step. It is nan for a
    class without images.
    """
    if not wanted.any():
        return float("nan")
    order = np.argsort(-scores, kind="stable")
    scores, wanted = scores[order], wanted[order]
    last = np.append(np.nonzero(np.diff(scores))[0], len(scores) - 1)  # of each group of equals
    hits = np.cumsum(wanted)[last]
    precision = hits / (last + 1)
    return float(100 * (np.diff(hits, prepend=0) * precision).sum() / hits[-1])


def mean_average_precision(scores: np.ndarray, labels: np.ndarray) -> float:
    """The mean over all classes that have images."""
    each = [average_precision(*pair) for pair in zip(scores.T, labels.T, strict=True)]
    known = [value for value in each if not np.isnan(value)]
    return float(np.mean(known)) if known else 0.0


def micro_f1(chosen: np.ndarray, labels: np.ndarray) -> float:
    """F1 over all (image, class) decisions, in percent."""
    hits, total = (chosen * labels).sum(), chosen.sum() + labels.sum()
    return float(200 * hits / total) if total else 100.0


def bootstrap(
    measure: Callable[[np.ndarray], float], count: int, *, seed: int = 1, samples: int = SAMPLES
) -> Interval:
    """Return a value with its confidence interval (percentile bootstrap).

    `measure` computes the value from image indices, which may repeat; `samples` sets of `count`
    images are drawn with replacement.
    """
    random = generator(seed, "bootstrap")
    drawn = [measure(random.integers(count, size=count)) for _ in range(samples)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(measure(np.arange(count)), float(low), float(high))
