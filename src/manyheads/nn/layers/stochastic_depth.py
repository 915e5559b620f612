"""Stochastic depth: in training, a residual branch is left out for some of the images."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.nn.layers.dropout import Dropout


class StochasticDepth(Dropout):
    """Leave a branch out with probability p, each image by itself (Huang et al. 2016, section 3).

    What is kept is scaled up, so that the expectation is that of evaluation.
    """

    name = "The rate of stochastic depth"

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
        """Drop whole images in training, return x in evaluation."""
        if not self.training or self.p == 0.0:
            return x
        kept = torch.rand(len(x), device=x.device) >= self.p
        scale = kept.to(x.dtype).div_(1 - self.p)
        return x * scale.view(-1, *(1 for _ in x.shape[1:]))


def linear_decay(p: float, layers: int) -> list[float]:
    """Rates from 0 in the first layer to p in the last: linear decay (equation 4)."""
    return [p * layer / max(layers - 1, 1) for layer in range(layers)]


def stage_decay(p: float, layers: Sequence[int]) -> list[list[float]]:
    """Rates of linear decay over all layers, grouped by stage."""
    rates = iter(linear_decay(p, sum(layers)))
    return [[next(rates) for _ in range(count)] for count in layers]
