"""LayerScale, alone and at the end of a residual branch."""

import torch
from torch import nn

from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.layer_scale import LayerScale
from manyheads.nn.layers.residual import PostNorm, PreNorm


def test_each_channel_has_its_gain() -> None:
    part = LayerScale(2, 0.5)
    part.gain.data = torch.tensor([2.0, -1.0])
    assert part(torch.tensor([[3.0, 4.0]])).tolist() == [[6.0, -4.0]]


def test_a_branch_begins_small() -> None:
    """x + 0.1 f(x), with f(x) = 1: 1.1."""
    residual = PreNorm(2, layer_scale=0.1)
    x = torch.ones(1, 1, 2)
    torch.testing.assert_close(residual.add(x, torch.ones_like(x)), torch.full((1, 1, 2), 1.1))


def test_a_dropped_branch_leaves_the_image_alone() -> None:
    torch.manual_seed(0)
    residual = PreNorm(2, drop_path=0.5).train()
    x = torch.zeros(64, 1, 2)
    added = residual.add(x, torch.ones_like(x))
    assert set(added.unique().tolist()) == {0.0, 2.0}


def test_without_them_a_residual_is_what_it_was() -> None:
    """Their names in a state dict too: models that were trained before still load."""
    for kind in (PreNorm, PostNorm):
        residual = kind(2, dropout=0.1)
        assert isinstance(residual.dropout, Dropout)
        assert list(residual.state_dict()) == ["norm.weight", "norm.bias"]
        scaled = kind(2, layer_scale=0.1, drop_path=0.1)
        assert isinstance(scaled.dropout, nn.Sequential)
