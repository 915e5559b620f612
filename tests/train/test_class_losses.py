"""Losses over shares of classes, against torch's own and by hand."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from manyheads.train.class_losses import (
    balanced_weights,
    binary_cross_entropy,
    distillation,
    one_hot,
    soft_cross_entropy,
)

torch.manual_seed(0)
LOGITS = torch.randn(6, 4)
LABELS = torch.tensor([0, 1, 2, 3, 3, 3])
WEIGHTS = torch.tensor([1.0, 2.0, 0.5, 0.25])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_one_class_each_is_torchs_cross_entropy(
    smoothing: float, weights: torch.Tensor | None
) -> None:
    """The sum, and with its weight the mean, of F.cross_entropy."""
    found = soft_cross_entropy(LOGITS, one_hot(LABELS, 4), smoothing, weights)

    def expected(reduction: str) -> torch.Tensor:
        return F.cross_entropy(
            LOGITS, LABELS, weight=weights, label_smoothing=smoothing, reduction=reduction
        )

    torch.testing.assert_close(found.sum, expected("sum"))
    torch.testing.assert_close(found.sum / found.weight, expected("mean"))


def test_shares_of_two_classes() -> None:
    """Against a mixture of two images: the mixture of their losses."""
    mixed = 0.3 * one_hot(LABELS, 4) + 0.7 * one_hot(LABELS.flip(0), 4)
    one, other = (
        F.cross_entropy(LOGITS, each, reduction="sum") for each in (LABELS, LABELS.flip(0))
    )
    torch.testing.assert_close(soft_cross_entropy(LOGITS, mixed, 0).sum, 0.3 * one + 0.7 * other)


def test_several_classes_by_hand() -> None:
    """-log p where a class applies, -log(1 - p) where it does not; the mean over the classes."""
    logits = torch.tensor([[np.log(3.0), 0.0]])  # p = 3/4, 1/2
    found = binary_cross_entropy(logits, torch.tensor([[1.0, 0.0]]), 0.0)
    assert found.sum.item() == pytest.approx((np.log(4 / 3) + np.log(2)) / 2, rel=1e-5)
    assert found.weight == 1
    weighed = binary_cross_entropy(
        logits, torch.tensor([[1.0, 0.0]]), 0.0, torch.tensor([2.0, 5.0])
    )
    assert weighed.sum.item() == pytest.approx((2 * np.log(4 / 3) + np.log(2)) / 2, rel=1e-5)


def test_a_student_that_agrees() -> None:
    """No distance to itself, at any temperature; the hard one remains the entropy of its choice."""
    assert distillation(LOGITS, LOGITS, 3.0, hard=False).item() == pytest.approx(0, abs=1e-5)
    hard = distillation(LOGITS, LOGITS, 1.0, hard=True)
    torch.testing.assert_close(hard, F.cross_entropy(LOGITS, LOGITS.argmax(1), reduction="sum"))


def test_distillation_by_hand() -> None:
    """KL((3/4, 1/4) || (1/2, 1/2)), times the temperature squared."""
    teacher = 2 * torch.tensor([[np.log(3.0), 0.0]])
    found = distillation(torch.zeros(1, 2), teacher, 2.0, hard=False)
    expected = 4 * (0.75 * np.log(1.5) + 0.25 * np.log(0.5))
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_balanced_weights() -> None:
    """As scikit-learn's "balanced": each class weighs the same in sum, an image 1 on average."""
    labels = np.array([0, 0, 0, 1])
    weights = balanced_weights(labels, 2)
    assert weights.tolist() == pytest.approx([4 / 6, 2.0])
    assert weights[labels].mean() == pytest.approx(1.0)
    several = np.array([[1, 0], [1, 0], [1, 1], [0, 0]])
    assert balanced_weights(several, 2).tolist() == pytest.approx([1 / 3, 3.0])
