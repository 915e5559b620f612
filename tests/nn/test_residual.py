"""Residual connection and LayerNorm: post-norm and pre-norm."""

import torch
from torch import Tensor, nn

from manyheads.nn.residual import PostNorm, PreNorm

ROOT = 1.5**0.5
X = torch.tensor([[[1.0, 2.0, 3.0]]])  # mean 2, variance 2/3, so normalised (-ROOT, 0, ROOT)


def double(x: Tensor) -> Tensor:
    return 2 * x


def test_post_norm_by_hand() -> None:
    """T11: LayerNorm(x + 2x) = LayerNorm((3, 6, 9)) = (-sqrt(3/2), 0, sqrt(3/2))."""
    out = PostNorm(3, eps=1e-12)(X, double)
    torch.testing.assert_close(out, torch.tensor([[[-ROOT, 0.0, ROOT]]]))


def test_pre_norm_by_hand() -> None:
    """V4: x + 2 LayerNorm(x) = (1 - 2 sqrt(3/2), 2, 3 + 2 sqrt(3/2))."""
    out = PreNorm(3, eps=1e-12)(X, double)
    torch.testing.assert_close(out, torch.tensor([[[1 - 2 * ROOT, 2.0, 3 + 2 * ROOT]]]))


def test_the_residual_is_what_keeps_the_input() -> None:
    """T11: a sub-layer that answers 0 leaves x alone before the norm: the path of the gradient."""
    assert torch.equal(PreNorm(3)(X, torch.zeros_like), X)
    out = PostNorm(3)(X, torch.zeros_like)
    assert torch.equal(out, nn.functional.layer_norm(X, (3,)))


def test_the_norm_uses_the_biased_variance() -> None:
    """T21: LayerNorm divides by the root of the mean square, eps inside, as nn.LayerNorm does."""
    x = torch.randn(1, 4, 6)
    centred = x - x.mean(-1, keepdim=True)
    expected = centred / (centred.square().mean(-1, keepdim=True) + 0.1).sqrt()
    torch.testing.assert_close(PostNorm(6, eps=0.1)(x, torch.zeros_like), expected)


def test_dropout_hits_the_sublayer_and_not_the_residual() -> None:
    """Section 5.4 of the paper: dropout on each sub-layer's output, before it is added."""
    torch.manual_seed(0)
    out = PreNorm(3, dropout=0.5).train()(torch.ones(1, 200, 3), torch.ones_like)
    assert set(out.unique().tolist()) == {1.0, 3.0}  # 1 + 0 or 1 + 2 * 1
