"""Residual blocks: what they compute, written out, and where their shortcuts are the identity."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.nn.vision.convolution import Convolution, NormedConvolution
from manyheads.nn.vision.residual_block import (
    BasicBlock,
    Block,
    BlockParts,
    Bottleneck,
    PreActivationBottleneck,
    stages,
)
from tests.small import randomise

BLOCKS: dict[str, Block] = {
    "basic": BasicBlock,
    "bottleneck": Bottleneck,
    "pre-activation": PreActivationBottleneck,
}
every = pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
PARTS = BlockParts(Convolution, nn.BatchNorm2d)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


@every
def test_a_block_that_changes_nothing_has_no_weights_in_its_shortcut(block: Block) -> None:
    """Only then is the shortcut the identity (He et al. 2016, option B)."""
    same = block(4, 4, 4, stride=1, parts=PARTS)
    assert not any("shortcut" in name for name, _ in same.named_parameters())
    for inputs, stride in ((4, 2), (6, 1)):
        other = block(inputs, 4, 4, stride=stride, parts=PARTS)
        assert any("shortcut" in name for name, _ in other.named_parameters())


def test_a_basic_block_by_hand() -> None:
    """ReLU(x + BN(conv(ReLU(BN(conv(x)))))), figure 2."""
    block = randomise(BasicBlock(3, 3, 3, stride=1, parts=PARTS)).eval()
    x = torch.randn(2, 3, 5, 6)
    close(block(x), F.relu(x + block.second(F.relu(block.first(x)))))


def test_a_bottleneck_halves_in_its_middle() -> None:
    """v1.5: every pixel reaches the 3 x 3 convolution."""
    block = randomise(Bottleneck(3, 2, 8, stride=2, parts=PARTS)).eval()
    x = torch.randn(2, 3, 6, 6)
    assert block(x).shape == (2, 8, 3, 3)
    assert block.reduce(x).shape == (2, 2, 6, 6)
    assert isinstance(block.shortcut, NormedConvolution)
    y = block.expand(F.relu(block.mix(F.relu(block.reduce(x)))))
    close(block(x), F.relu(y + block.shortcut(x)))


def test_pre_activation_leaves_the_sum_alone() -> None:
    """He et al. 2016b: with branches that say nothing, a block is the identity; no ReLU cuts it."""
    block = randomise(PreActivationBottleneck(4, 2, 4, stride=1, parts=PARTS)).eval()
    nn.init.zeros_(block.expand.weight)
    x = torch.randn(2, 4, 5, 5)
    assert torch.equal(block(x), x)
    assert (x < 0).any()


def test_stages_halve_from_the_second_on() -> None:
    built = stages(
        Bottleneck,
        3,
        depths=(2, 1, 2),
        widths=(2, 3, 4),
        outputs=(4, 6, 8),
        parts=PARTS,
    ).eval()
    shapes, x = [], torch.randn(1, 3, 16, 12)
    for stage in built:
        x = stage(x)
        shapes.append(tuple(x.shape[1:]))
    assert shapes == [(4, 16, 12), (6, 8, 6), (8, 4, 3)]
    assert [len(list(stage.children())) for stage in built] == [2, 1, 2]
