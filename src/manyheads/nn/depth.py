"""Stochastic depth: in training, a residual branch is left out for some of the images."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError


class StochasticDepth(nn.Module):
    """Leave a branch out with probability p, each image by itself (Huang et al. 2016, section 3).

    What is kept is scaled up, so that the expectation is that of evaluation.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p <= 0.99:
            raise UsageError(
                f"The rate of stochastic depth is {p}: it must lie between 0 and 0.99."
            )
        self.p = p

    def extra_repr(self) -> str:
        """Show p."""
        return f"p={self.p}"

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
        """Drop whole images in training, return x in evaluation."""
        if not self.training or self.p == 0.0:
            return x
        kept = torch.rand(len(x), device=x.device) >= self.p
        scale = kept.to(x.dtype).div_(1 - self.p)
        return x * scale.view(-1, *(1 for _ in x.shape[1:]))


def rising(p: float, layers: int) -> list[float]:
    """Rates from 0 in the first layer to p in the last: linear decay (equation 4)."""
    return [p * layer / max(layers - 1, 1) for layer in range(layers)]
