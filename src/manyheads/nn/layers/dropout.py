"""Dropout from random bytes: on a CPU, drawing the random bits is most of what dropout costs."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from manyheads.errors import UsageError


class Dropout(nn.Module):
    """Zero each value with probability p and scale up the rest (Srivastava et al. 2014).

    On a CPU one random byte a value instead of one float: p is rounded to a multiple of 1/256, and
    the scale follows the rounded p, so that the expectation is exact. On a GPU, and in code that
    torch.compile makes, torch's own, with p as it is.
    """

    name = "dropout"

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p <= 0.99:
            raise UsageError(f"{self.name} is {p}: it must lie between 0 and 0.99.")
        self.p = p

    def extra_repr(self) -> str:
        """Show p."""
        return f"p={self.p}"

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Drop in training, return x in evaluation."""
        if torch.compiler.is_compiling() or not x.is_cpu:
            # A GPU has one kernel for it, where this would be six; a compiler joins it with others.
            return F.dropout(x, self.p, self.training)
        dropped = round(256 * self.p)
        if not self.training or dropped == 0:
            return x
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64, device=x.device)
        # From the lowest number and with no upper end: all 64 bits are random.
        words.random_(torch.iinfo(torch.int64).min, None)
        kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= dropped
        # Bytes of 0 and 1 are converted by vector instructions, truth values one by one.
        return x * kept.view(torch.uint8).to(x.dtype).mul_(256 / (256 - dropped))
