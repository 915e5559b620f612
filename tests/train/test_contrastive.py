"""Losses of two towers, by hand and against the formulas of their papers."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from manyheads.train.contrastive import CONTRASTS, sigmoid_contrast, softmax_contrast

EYE = torch.eye(2, dtype=torch.bool)


def scores(images: int, texts: int, seed: int = 0) -> Tensor:
    return 3 * torch.randn(images, texts, generator=torch.Generator().manual_seed(seed))


def test_softmax_of_two_pairs_by_hand() -> None:
    """[[ln 3, 0], [0, 0]]: of four softmaxes two give 3/4 to the right one, two 1/2."""
    given = torch.tensor([[math.log(3), 0.0], [0.0, 0.0]])
    expected = -(2 * math.log(3 / 4) + 2 * math.log(1 / 2)) / 2
    assert softmax_contrast(given, EYE).item() == pytest.approx(expected)


def test_sigmoid_of_two_pairs_by_hand() -> None:
    """[[ln 3, 0], [-ln 3, ln 3]]: the right ones have 3/4, the wrong ones 1 - 1/2 and 1 - 1/4."""
    given = torch.tensor([[math.log(3), 0.0], [-math.log(3), math.log(3)]])
    expected = -(3 * math.log(3 / 4) + math.log(1 / 2))
    assert sigmoid_contrast(given, EYE).item() == pytest.approx(expected)


def test_three_pairs_of_which_two_share_a_text_by_hand() -> None:
    """Images 0 and 1 belong to texts 0 and 1 both; with equal scores, the loss is its least: ln 2.

    Every softmax over three equal scores but one: image 2 and text 2 have a score of -inf with all
    others, and are sure of each other.
    """
    far = -1e9
    given = torch.tensor([[0.0, 0.0, far], [0.0, 0.0, far], [far, far, 0.0]])
    positives = torch.tensor([[1, 1, 0], [1, 1, 0], [0, 0, 1]]).bool()
    assert softmax_contrast(given, positives).item() == pytest.approx(2 * math.log(2))
    assert sigmoid_contrast(given, positives).item() == pytest.approx(5 * math.log(2))
    alone = torch.eye(3, dtype=torch.bool)  # as if the same text were wrong for the other image
    assert softmax_contrast(given, alone).item() == pytest.approx(2 * math.log(2))
    better = given + torch.tensor([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 0]])
    assert softmax_contrast(better, alone) < softmax_contrast(given, alone)
    assert softmax_contrast(better, positives) > softmax_contrast(given, positives)


@given(count=st.integers(1, 6), seed=st.integers(0, 99))
def test_softmax_is_the_loss_of_clip(count: int, seed: int) -> None:
    """Figure 3 of the paper: the mean of two cross-entropies against 0, 1, 2, ...; here a sum."""
    each = scores(count, count, seed)
    labels = torch.arange(count)
    theirs = (F.cross_entropy(each, labels) + F.cross_entropy(each.T, labels)) / 2
    ours = softmax_contrast(each, torch.eye(count, dtype=torch.bool)) / count
    torch.testing.assert_close(ours, theirs)


@given(count=st.integers(1, 6), seed=st.integers(0, 99))
def test_sigmoid_is_the_loss_of_siglip(count: int, seed: int) -> None:
    """Algorithm 1 of the paper: labels 2 I - 1; the sum is divided by the number of images."""
    each = scores(count, count, seed)
    labels = 2 * torch.eye(count) - 1
    theirs = -F.logsigmoid(labels * each).sum() / count
    ours = sigmoid_contrast(each, torch.eye(count, dtype=torch.bool)) / count
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("name", CONTRASTS)
@given(images=st.integers(2, 5), times=st.integers(1, 3), seed=st.integers(0, 99))
def test_order_does_not_matter(name: str, images: int, times: int, seed: int) -> None:
    """Of images nor of texts, of which an image may have several."""
    loss = CONTRASTS[name]  # type: ignore[index]
    each = scores(images, images * times, seed)
    positives = torch.eye(images, dtype=torch.bool).repeat_interleave(times, dim=1)
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(images, generator=generator)
    columns = torch.randperm(images * times, generator=generator)
    torch.testing.assert_close(
        loss(each[rows][:, columns], positives[rows][:, columns]), loss(each, positives)
    )


def test_several_right_texts_share_the_target() -> None:
    """Soft targets of 1/2 for an image's two texts; each text has one image."""
    each = scores(2, 4)
    positives = torch.eye(2, dtype=torch.bool).repeat_interleave(2, dim=1)
    rows = F.cross_entropy(each, positives.float() / 2, reduction="sum")
    columns = F.cross_entropy(each.T, torch.tensor([0, 0, 1, 1]), reduction="sum")
    torch.testing.assert_close(softmax_contrast(each, positives), (rows + columns) / 2)


@pytest.mark.parametrize("name", CONTRASTS)
def test_large_scores_stay_finite(name: str) -> None:
    """A scale of 100: exp(100) is no float32."""
    each = torch.tensor([[100.0, -100.0], [-100.0, -100.0]], requires_grad=True)
    loss = CONTRASTS[name](each, EYE)  # type: ignore[index]
    loss.backward()
    assert loss.isfinite()
    assert each.grad is not None
    assert each.grad.isfinite().all()
