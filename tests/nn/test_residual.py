"""Residual connection and LayerNorm: post-norm and pre-norm."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from manyheads.nn.layers.residual import PostNorm, PreNorm

ROOT = 1.5**0.5
X = torch.tensor([[[1.0, 2.0, 3.0]]])  # mean 2, variance 2/3, so normalised (-ROOT, 0, ROOT)


def wrapped(residual: PostNorm | PreNorm, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """One sub-layer's line in a block, for X."""
    return residual.add(X, sublayer(residual.enter(X)))


def double(x: Tensor) -> Tensor:
    return 2 * x


def test_post_norm_by_hand() -> None:
    """T11: LayerNorm(x + 2x) = LayerNorm((3, 6, 9)) = (-sqrt(3/2), 0, sqrt(3/2))."""
    out = wrapped(PostNorm(3, eps=1e-12), double)
    torch.testing.assert_close(out, torch.tensor([[[-ROOT, 0.0, ROOT]]]))


def test_pre_norm_by_hand() -> None:
    """V4: x + 2 LayerNorm(x) = (1 - 2 sqrt(3/2), 2, 3 + 2 sqrt(3/2))."""
    out = wrapped(PreNorm(3, eps=1e-12), double)
    torch.testing.assert_close(out, torch.tensor([[[1 - 2 * ROOT, 2.0, 3 + 2 * ROOT]]]))


def test_what_the_sub_layer_reads() -> None:
    """Section 3.1: x itself; ViT, equation 2: LayerNorm(x)."""
    assert torch.equal(PostNorm(3).enter(X), X)
    normalised = torch.tensor([[[-ROOT, 0.0, ROOT]]])
    torch.testing.assert_close(PreNorm(3, eps=1e-12).enter(X), normalised)


def test_the_residual_is_what_keeps_the_input() -> None:
    """T11: a sub-layer that answers 0 leaves x alone before the norm: the path of the gradient."""
    assert torch.equal(wrapped(PreNorm(3), torch.zeros_like), X)
    out = wrapped(PostNorm(3), torch.zeros_like)
    assert torch.equal(out, nn.functional.layer_norm(X, (3,)))


def test_the_norm_uses_the_biased_variance() -> None:
    """T21: LayerNorm divides by the root of the mean square, eps inside, as nn.LayerNorm does."""
    x = torch.randn(1, 4, 6)
    centred = x - x.mean(-1, keepdim=True)
    expected = centred / (centred.square().mean(-1, keepdim=True) + 0.1).sqrt()
    torch.testing.assert_close(PostNorm(6, eps=0.1).add(x, torch.zeros_like(x)), expected)


def test_dropout_hits_the_sublayer_and_not_the_residual() -> None:
    """Section 5.4 of the paper: dropout on each sub-layer's output, before it is added."""
    torch.manual_seed(0)
    x = torch.ones(1, 200, 3)
    out = PreNorm(3, dropout=0.5).train().add(x, x)
    assert set(out.unique().tolist()) == {1.0, 3.0}  # 1 + 0 or 1 + 2 * 1
