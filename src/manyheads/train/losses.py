"""Losses, summed so that the loop can divide by what a whole accumulation window weighs."""

from typing import Any

import torch
from torch import Tensor


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Sum over all items of the cross-entropy against smoothed targets (Szegedy et al. 2016, 7).

    The target distribution gives 1 - smoothing to the true class and spreads smoothing evenly over
    all classes. Equals `F.cross_entropy(..., label_smoothing=smoothing, reduction="sum")`, which
    over a vocabulary takes several passes more over the logits.

    Args:
        logits: (items, classes).
        targets: (items,) class of each item.
        smoothing: between 0 and 1.
    """
    loss: Tensor = _SmoothedCrossEntropy.apply(logits, targets, smoothing)  # type: ignore[no-untyped-call]
    return loss


class _SmoothedCrossEntropy(torch.autograd.Function):
    """-sum_c q_c log p_c = -(1 - s) log p_y - s mean(log p); its gradient is p - q."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        log_p = logits.float().log_softmax(dim=1)
        ctx.save_for_backward(log_p, targets)
        ctx.smoothing = smoothing
        true = log_p.gather(1, targets[:, None])[:, 0]
        return -((1 - smoothing) * true + smoothing * log_p.mean(dim=1)).sum()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        log_p, targets = ctx.saved_tensors
        grad = log_p.exp().sub_(ctx.smoothing / log_p.shape[1])
        true = torch.full_like(targets, ctx.smoothing - 1, dtype=grad.dtype)
        grad.scatter_add_(1, targets[:, None], true[:, None])
        return grad.mul_(grads[0]), None, None
