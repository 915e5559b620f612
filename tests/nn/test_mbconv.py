"""Squeeze-and-excitation, and what surrounds it."""

import torch
from torch import nn

from manyheads.nn.vision.mbconv import MaxDown, MBConv, MeanDown, SqueezeExcitation, shrink


def test_squeeze_and_excitation_by_hand() -> None:
    """V17: means 2 and 0 squeeze to relu(2 - 0) = 2; excitation gives sigmoid(2) and sigmoid(0)."""
    part = SqueezeExcitation(2, 1, nn.ReLU())
    for layer in (part.squeeze, part.excite):
        assert layer.bias is not None
        nn.init.zeros_(layer.bias)
    part.squeeze.weight.data = torch.tensor([1.0, -1.0]).view(1, 2, 1, 1)
    part.excite.weight.data = torch.tensor([1.0, 0.0]).view(2, 1, 1, 1)
    x = torch.tensor([[[[1.0, 3.0]], [[-4.0, 4.0]]]])
    gates = torch.tensor([2.0, 0.0]).sigmoid()
    torch.testing.assert_close(part(x), x * gates.view(1, 2, 1, 1))


def test_halving_by_hand() -> None:
    """At an odd edge, what there is is averaged."""
    x = torch.tensor([[[[1.0, 2, 3], [5, 6, 7], [9, 9, 1]]]])
    assert MeanDown()(x).tolist() == [[[[3.5, 5.0], [9.0, 1.0]]]]
    assert MaxDown()(x).tolist() == [[[[6.0, 7.0], [9.0, 9.0]]]]


def test_a_shortcut_widens_only_where_needed() -> None:
    x = torch.randn(1, 4, 4, 6)
    assert shrink(4, 8, MeanDown, bias=True)(x).shape == (1, 8, 2, 3)
    same = shrink(4, 4, MeanDown, bias=True)
    assert not list(same.parameters())
    assert torch.equal(same(x), MeanDown()(x))


def test_the_branch_is_added_to_the_shortcut() -> None:
    torch.manual_seed(0)
    x = torch.ones(64, 2, 1, 1)
    block = MBConv(nn.Sequential(), nn.Identity(), drop_path=0.5)
    assert block.eval()(x).eq(2).all()
    assert set(block.train()(x).unique().tolist()) == {1.0, 3.0}
