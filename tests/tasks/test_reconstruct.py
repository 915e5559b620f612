"""Learning from images alone: what is hidden, what is seen, and what is measured."""

import numpy as np
import pytest
import torch

from manyheads.data.augment.augment import Augmentation
from manyheads.data.images.image_set import ImageSet, Preprocessing
from manyheads.models.vit import Vit, VitConfig
from manyheads.nn.vision.patch import patchify
from manyheads.tasks.reconstruct.task import (
    Reconstructor,
    ReconstructTask,
    ReconstructTrainConfig,
    masks,
)
from tests.made import half
from tests.small import randomise

PREPROCESSING = Preprocessing(height=4, width=6, mode="L")
CONFIG = VitConfig(
    height=4, width=6, channels=1, patch=2, dim=8, layers=1, heads=2, ffn_dim=16, classes=1
)


def images(count: int = 6) -> ImageSet:
    return ImageSet(
        labels=np.zeros(count, dtype=int),
        classes=["image"],
        names=[f"half {index}" for index in range(count)],
        read=lambda index: half(index % 2, index),
    )


def task(masked: float = 0.5) -> ReconstructTask:
    config = ReconstructTrainConfig(batch_size=4, masked=masked)
    return ReconstructTask(
        images(), images(), PREPROCESSING, Augmentation(), config, CONFIG.patch, seed=1
    )


def model() -> Reconstructor:
    return randomise(Reconstructor(Vit(CONFIG))).eval()


def test_masks() -> None:
    """Half of six patches, drawn for each example and epoch, and drawn again the same."""
    examples = np.arange(300)
    drawn = masks(PREPROCESSING, 2, 0.5, examples, seed=1, epoch=0).numpy()
    assert drawn.shape == (300, 6)
    assert (drawn.sum(axis=1) == 3).all()
    again = masks(PREPROCESSING, 2, 0.5, examples[::-1].copy(), seed=1, epoch=0).numpy()
    assert (drawn == again[::-1]).all()
    assert len(np.unique(drawn, axis=0)) == 20  # 6 over 3
    other = masks(PREPROCESSING, 2, 0.5, examples[:50], seed=1, epoch=1).numpy()
    assert (drawn[:50] != other).any()
    assert masks(PREPROCESSING, 2, 0.0, examples[:1], seed=1, epoch=0).sum() == 1  # never nothing


def test_what_is_hidden_is_not_seen() -> None:
    """Pixels under a mask change no prediction; pixels beside it do."""
    net = model()
    batch = torch.randn(1, 1, 4, 6)
    masked = torch.tensor([[True, False, False, False, True, False]])
    before = net(batch, masked)
    assert before.shape == (1, 6, 4)
    other = batch.clone()
    other[:, :, :2, :2] += 1  # patch 0
    torch.testing.assert_close(net(other, masked), before)
    other[:, :, :2, 2:4] += 1  # patch 1
    assert (net(other, masked) - before).abs().max() > 1e-3


def test_ranks_share_the_plan() -> None:
    """Each gets every second image of a batch."""
    for rank in range(2):
        expected = [batch[rank::2].tolist() for batch in task().plan(0)]
        assert [part.tolist() for part in task().plan(0, rank, 2)] == expected


def test_the_loss_by_hand() -> None:
    """Mean distance over the pixels of hidden patches only, summed over the images."""
    made, net = task(), model()
    (batch,) = made.load(0, [np.array([3, 0])])
    assert (batch.units, batch.masked.sum(1).tolist()) == (2, [3, 3])
    gap = (net(batch.images, batch.masked) - patchify(batch.images, 2)).abs()
    expected = sum(gap[row][batch.masked[row]].mean() for row in range(2))
    loss = made.loss(net, batch)
    assert (loss.weight, loss.logs) == (2, {})
    torch.testing.assert_close(loss.sum, expected)
    assert made.describe(batch) == "half 3, half 0"


def test_measuring_hides_the_same_patches_every_time() -> None:
    """Or one validation could not be compared with the next."""
    made, net = task(), model()
    assert made.evaluate(net) == made.evaluate(net)
    assert made.evaluate(net)["loss"] == pytest.approx(made.evaluate(net)["loss"])
    assert task(masked=0.9).evaluate(net) != made.evaluate(net)


def test_the_head_of_a_classifier_is_not_part_of_it() -> None:
    """Nothing that no loss reaches is stored or decayed."""
    net = Reconstructor(Vit(CONFIG)).train()
    (batch,) = task().load(0, [np.arange(4)])
    task().loss(net, batch).sum.backward()
    assert [name for name, p in net.named_parameters() if p.grad is None] == []
