"""What is measured of a classifier, from its probabilities alone (numpy, no model).

`probabilities` are (picture, class); `labels` (picture,) numbers, or (picture, class) 0 or 1 where
several classes may apply.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from manyheads.streams import generator

BINS = 15  # of the reliability diagram (Guo et al. 2017)
SAMPLES = 1000


class Interval(NamedTuple):
    """A value, and where 95% of the bootstrap samples lie."""

    value: float
    low: float
    high: float


class Bin(NamedTuple):
    """Pictures whose likeliest class has a probability between two limits."""

    low: float
    high: float
    pictures: int
    confidence: float  # mean probability
    accuracy: float  # share that is right


class ClassScore(NamedTuple):
    """How well one class is found."""

    pictures: int
    precision: float
    recall: float
    f1: float


def top_k(probabilities: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Say for each picture whether its class is among the k likeliest.

    Of equally likely classes the first come first, as in the model's own answer; what is not a
    number is no hit.
    """
    own = np.take_along_axis(probabilities, labels[:, None], axis=1)
    before = np.arange(probabilities.shape[1]) < labels[:, None]
    ahead = (probabilities > own) | ((probabilities == own) & before)
    return (ahead.sum(axis=1) < k) & ~np.isnan(own[:, 0])


def confusion(guesses: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """Count pictures by true class (row) and by guess (column)."""
    cells = np.bincount(labels * classes + guesses, minlength=classes * classes)
    return cells.reshape(classes, classes)


def per_class(matrix: np.ndarray) -> list[ClassScore]:
    """Read precision, recall and F1 off a confusion matrix, in percent; 0 where undefined."""
    hits, rows, columns = np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)
    return [_class_score(*map(int, each)) for each in zip(hits, rows, columns, strict=True)]


def per_label(chosen: np.ndarray, labels: np.ndarray) -> list[ClassScore]:
    """The same where several classes may apply: both are (picture, class) of 0 and 1."""
    hits = (chosen * labels).sum(axis=0)
    rows, columns = labels.sum(axis=0), chosen.sum(axis=0)
    return [_class_score(*map(int, each)) for each in zip(hits, rows, columns, strict=True)]


def _class_score(hits: int, there: int, said: int) -> ClassScore:
    return ClassScore(
        there,
        100 * hits / said if said else 0.0,
        100 * hits / there if there else 0.0,
        200 * hits / (there + said) if there + said else 0.0,
    )


def reliability(confidences: np.ndarray, right: np.ndarray, bins: int = BINS) -> list[Bin]:
    """Group answers by how sure the model was: (0, 1/bins], ..., those without any left out."""
    place = np.clip(np.ceil(confidences * bins).astype(int) - 1, 0, bins - 1)
    found = []
    for number in range(bins):
        inside = place == number
        if inside.any():
            found.append(
                Bin(
                    number / bins,
                    (number + 1) / bins,
                    int(inside.sum()),
                    float(confidences[inside].mean()),
                    float(right[inside].mean()),
                )
            )
    return found


def calibration_error(bins: list[Bin]) -> float:
    """ECE: the mean distance of confidence and accuracy, in percent (Guo et al. 2017, 3)."""
    total = sum(each.pictures for each in bins)
    return 100 * sum(e.pictures * abs(e.accuracy - e.confidence) for e in bins) / max(total, 1)


def average_precision(scores: np.ndarray, wanted: np.ndarray) -> float:
    """The mean of the precision at each picture that has the class, the likeliest first.

    As scikit-learn's `average_precision_score`: equal scores count as one step. Of a class that no
    picture has, there is none: nan.
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
    """The mean over the classes that any picture has."""
    each = [average_precision(*pair) for pair in zip(scores.T, labels.T, strict=True)]
    known = [value for value in each if not np.isnan(value)]
    return float(np.mean(known)) if known else 0.0


def micro_f1(chosen: np.ndarray, labels: np.ndarray) -> float:
    """F1 of all decisions together, in percent."""
    hits, total = (chosen * labels).sum(), chosen.sum() + labels.sum()
    return float(200 * hits / total) if total else 100.0


def bootstrap(
    measure: Callable[[np.ndarray], float], count: int, *, seed: int = 1, samples: int = SAMPLES
) -> Interval:
    """Say how much a value owes to the luck of these pictures (percentile bootstrap).

    Args:
        measure: computes the value of pictures by their indices, which may repeat.
        count: of pictures.
        seed: of the samples.
        samples: how many sets are drawn with replacement.
    """
    random = generator(seed, "bootstrap")
    drawn = [measure(random.integers(count, size=count)) for _ in range(samples)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Interval(measure(np.arange(count)), float(low), float(high))
