"""What is measured of a classifier, against scikit-learn and by hand."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, confusion_matrix, f1_score
from sklearn.metrics import precision_recall_fscore_support as prfs

from manyheads.tasks.classify.class_metrics import (
    average_precision,
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

RANDOM = np.random.default_rng(0)
LABELS = RANDOM.integers(0, 4, 200)
GUESSES = np.where(RANDOM.random(200) < 0.6, LABELS, RANDOM.integers(0, 4, 200))
SEVERAL = (RANDOM.random((50, 3)) < 0.3).astype(int)
SCORES = np.round(RANDOM.random((50, 3)) * 0.7 + 0.3 * SEVERAL, 1)  # with ties


def test_confusion_and_classes_are_scikit_learns() -> None:
    """Rows are the truth; precision, recall and F1 of each class."""
    matrix = confusion(GUESSES, LABELS, 4)
    assert (matrix == confusion_matrix(LABELS, GUESSES)).all()
    for found, expected in zip(per_class(matrix), np.stack(prfs(LABELS, GUESSES)).T, strict=True):
        precision, recall, f1, count = expected
        assert found == pytest.approx((count, 100 * precision, 100 * recall, 100 * f1))


def test_a_class_that_never_occurs() -> None:
    """Neither in the data nor in the answers: zeros, not a division by zero."""
    assert per_class(confusion(np.array([0]), np.array([0]), 2))[1] == (0, 0.0, 0.0, 0.0)


def test_several_labels_are_scikit_learns() -> None:
    """Average precision with ties, its mean, F1 of all decisions and of each class."""
    for scores, wanted in zip(SCORES.T, SEVERAL.T, strict=True):
        expected = 100 * average_precision_score(wanted, scores)
        assert average_precision(scores, wanted) == pytest.approx(expected)
    assert mean_average_precision(SCORES, SEVERAL) == pytest.approx(
        100 * average_precision_score(SEVERAL, SCORES, average="macro")
    )
    chosen = (SCORES > 0.5).astype(int)
    assert micro_f1(chosen, SEVERAL) == pytest.approx(
        100 * f1_score(SEVERAL, chosen, average="micro")
    )
    each = [score.f1 for score in per_label(chosen, SEVERAL)]
    assert each == pytest.approx(100 * f1_score(SEVERAL, chosen, average=None))


def test_a_label_that_nobody_has_does_not_count() -> None:
    """There is no precision to average over."""
    labels = np.array([[1, 0], [0, 0]])
    assert mean_average_precision(np.array([[0.9, 0.1], [0.2, 0.8]]), labels) == 100.0


def test_top_k() -> None:
    """Second place is among the first two."""
    probabilities = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    labels = np.array([1, 0])
    assert top_k(probabilities, labels, 1).tolist() == [False, False]
    assert top_k(probabilities, labels, 2).tolist() == [True, False]
    assert top_k(probabilities, labels, 3).all()


def test_top_k_of_a_model_that_tells_nothing_apart() -> None:
    """Of ten classes equally likely, the first five are its five answers: half are right."""
    labels = np.arange(10)
    found = top_k(np.full((10, 10), 0.1), labels, 5)
    assert found.tolist() == [True] * 5 + [False] * 5
    assert top_k(np.full((10, 10), 0.1), labels, 1).sum() == 1


def test_what_is_not_a_number_is_no_hit() -> None:
    """Although nothing is likelier than it."""
    probabilities = np.array([[np.nan] * 3, [0.5, 0.3, 0.2]])
    assert top_k(probabilities, np.array([0, 0]), 2).tolist() == [False, True]


def test_calibration_by_hand() -> None:
    """Two answers at .95 of which one is right, two at .55 both right: (.45 + .45) / 2."""
    bins = reliability(np.array([0.95, 0.95, 0.55, 0.55]), np.array([1, 0, 1, 1]), bins=10)
    assert [(each.images, each.accuracy) for each in bins] == [(2, 1.0), (2, 0.5)]
    assert (bins[0].low, bins[0].high) == (0.5, 0.6)
    assert calibration_error(bins) == pytest.approx(45.0)
    assert reliability(np.array([1.0, 0.0]), np.array([1, 0]), bins=10)[0].low == 0


def test_the_upper_limit_belongs_to_a_bin() -> None:
    """(0, 1/4], (1/4, 1/2], ...: quarters, which binary numbers hold exactly, end their bin."""
    bins = reliability(np.array([0.25, 0.375, 0.5, 0.75, 1.0]), np.ones(5), bins=4)
    assert [(each.low, each.high, each.images) for each in bins] == [
        (0.0, 0.25, 1),
        (0.25, 0.5, 2),
        (0.5, 0.75, 1),
        (0.75, 1.0, 1),
    ]
    assert [each.confidence for each in bins] == [0.25, 0.4375, 0.75, 1.0]


def test_fifteen_bins_unless_told() -> None:
    """As Guo et al. 2017 count, section 5: 150 answers of even confidence, ten a bin."""
    confidences = (np.arange(150) + 0.5) / 150
    bins = reliability(confidences, np.ones(150))
    assert [each.images for each in bins] == [10] * 15
    assert [each.low for each in bins] == pytest.approx(np.arange(15) / 15)
    # Every answer is right; the mean confidence is 1/2, so the error is 1/2.
    assert calibration_error(bins) == pytest.approx(50)


def test_bootstrap() -> None:
    """The width is that of the normal approximation, and the seed decides."""
    right = np.arange(400) % 4 > 0
    found = bootstrap(lambda rows: float(100 * right[rows].mean()), 400)
    assert found.value == 75.0
    half = 1.96 * 100 * (0.75 * 0.25 / 400) ** 0.5
    assert found.low == pytest.approx(75 - half, abs=0.7)
    assert found.high == pytest.approx(75 + half, abs=0.7)
    assert bootstrap(lambda rows: float(100 * right[rows].mean()), 400) == found
