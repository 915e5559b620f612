"""Losses as sums: the loop divides by the total weight of an accumulation window."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROWS = 256  # of logits at a time: 10 MB in fp32 over a vocabulary of 10,000, about a CPU's cache
ROWS_ON_GPU = 8192  # a GPU computes small blocks no faster than large ones


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Sum over all items of the cross-entropy against smoothed targets (Szegedy et al. 2016, 7).

    The target distribution gives 1 - smoothing to the true class and distributes smoothing evenly
    over all classes. Equals `F.cross_entropy(..., label_smoothing=smoothing, reduction="sum")`,
    which needs several more passes over the logits of a vocabulary.

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


def projected_cross_entropy(
    layer: nn.Linear, x: Tensor, *, targets: Tensor, smoothing: float, r_drop: float = 0.0
) -> Tensor:
    """Compute `smoothed_cross_entropy(layer(x), targets, smoothing)` without storing all logits.

    The logits over a vocabulary and their gradient are by far the largest tensors of a small
    model, and memory access takes most of the time. So the output layer, the loss and both
    gradients are computed for a few hundred rows at a time (a few thousand on a GPU), while they
    are in the cache.

    With r_drop the same items come twice, with different dropout, and the divergence of their two
    distributions is added: half of equation (4) of Liang et al. 2021, "R-Drop", so that the loss
    has the scale of one copy.

    Args:
        layer: the output layer, dim -> classes.
        x: (items, dim) its inputs; (2 x items, dim) with r_drop, all items and then all again.
        targets: (items,) class of each item.
        smoothing: between 0 and 1.
        r_drop: alpha, the weight of the divergence between the copies.
    """
    loss: Tensor = _ProjectedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        x.view(-1, len(targets), x.shape[-1]), layer.weight, layer.bias, targets, smoothing, r_drop
    )
    return loss


class Gradients(NamedTuple):
    """The loss, and what it adds to the gradients of the output layer's inputs and parameters."""

    loss: Tensor
    x: Tensor
    weight: Tensor
    bias: Tensor | None


class _ProjectedCrossEntropy(torch.autograd.Function):
    """Gradients are computed in the forward pass with the logits; backward only scales them."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        smoothing: float,
        r_drop: float,
    ) -> Tensor:
        device = x.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
        x, weight = x.detach(), weight.detach()
        bias = None if bias is None else bias.detach()
        with torch.autocast(device, enabled=False):
            if device == "cpu" and dtype == torch.bfloat16 and len(x) == 1:
                gradients = _in_bf16(x, weight, bias, targets, smoothing)
            else:
                gradients = _in_fp32(x, weight, bias, targets, smoothing, r_drop, dtype)
        ctx.save_for_backward(gradients.x, gradients.weight, gradients.bias)
        return gradients.loss

    @staticmethod
    def backward(
        ctx: Any, *grads: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None, None, None, None]:
        grad_x, grad_weight, grad_bias = ctx.saved_tensors
        bias = None if grad_bias is None else grad_bias * grads[0]
        return grad_x * grads[0], grad_weight * grads[0], bias, None, None, None


def _in_fp32(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    smoothing: float,
    r_drop: float,
    dtype: torch.dtype,
) -> Gradients:
    """Compute the loss from log-probabilities in fp32 or wider, whatever `dtype` the products use.

    x is (copy, item, dim).
    """
    x_low, weight_low = x.to(dtype), weight.to(dtype)
    wide = torch.promote_types(dtype, torch.float32)
    loss = torch.zeros((), device=x.device, dtype=wide)
    grad_x, grad_weight = torch.empty_like(x), torch.zeros_like(weight)
    grad_bias = None if bias is None else torch.zeros_like(bias)
    step = (ROWS if x.is_cpu else ROWS_ON_GPU) // len(x)
    for rows in (slice(i, i + step) for i in range(0, len(targets), step)):
        logits = (x_low[:, rows] @ weight_low.T).to(wide)
        log_p = (logits if bias is None else logits + bias).log_softmax(dim=2)
        part, grad = _smoothed(log_p, targets[rows], smoothing)
        if r_drop:
            divergence, grad_divergence = _divergence(log_p)
            part += r_drop * divergence
            grad.add_(grad_divergence, alpha=r_drop)
        loss += part
        if grad_bias is not None:
            grad_bias += grad.sum(dim=(0, 1))
        grad = grad.to(dtype)
        grad_x[:, rows] = (grad @ weight_low).to(grad_x.dtype)
        grad_weight += grad.flatten(0, 1).T @ x_low[:, rows].flatten(0, 1)
    return Gradients(loss, grad_x, grad_weight, grad_bias)


def _in_bf16(
    x: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, smoothing: float
) -> Gradients:
    """Compute the same with one pass of the softmax over logits in bf16, and no copy of them.

    A probability's rounding error is as large as its gradient's would be when it is rounded for the
    products; only of the target's the difference to 1 is needed: the sum of all others. What
    smoothing takes from every class alike, smoothing / classes, is taken from the products.

    x is (1, item, dim).
    """
    x = x[0]
    x_low, weight_low = x.to(torch.bfloat16), weight.to(torch.bfloat16)
    bias_low = None if bias is None else bias.to(torch.bfloat16)
    uniform, classes = smoothing / len(weight), weight_low.sum(0, dtype=torch.float32)
    loss = -uniform * (x.float() @ classes).sum()  # -s times the mean of all logits
    if bias is not None:
        loss -= uniform * bias.float().sum() * len(targets)
    grad_x, grad_weight = torch.empty_like(x), torch.zeros_like(weight)
    grad_bias = None if bias is None else torch.zeros_like(bias)
    for rows in (slice(i, i + ROWS) for i in range(0, len(targets), ROWS)):
        true = targets[rows]
        logits = F.linear(x_low[rows], weight_low, bias_low)
        p = logits.softmax(dim=1)
        each = torch.arange(len(true), device=x.device)
        p_true = p[each, true].float()
        p[each, true] = 0
        others = p.sum(dim=1).float()  # 1 - p_true, and as exact as it is small
        log_p = torch.where(others < 0.5, torch.log1p(-others), p_true.log())
        if (p_true == 0).any():  # too small for a number of this type
            log_p = logits.float().log_softmax(dim=1)[each, true]
        # -(1 - s) log p - s (mean of logits - logit + log p)
        loss += (smoothing * logits[each, true].float() - log_p).sum()
        grad = p.index_put_((each, true), (smoothing - others).to(p.dtype))
        if grad_bias is not None:
            grad_bias += grad.sum(dim=0, dtype=torch.float32) - uniform * len(true)
        grad_x[rows] = (grad @ weight_low).to(x.dtype)
        grad_weight += grad.T @ x_low[rows]
    grad_x -= uniform * classes
    grad_weight -= uniform * x.sum(dim=0, dtype=torch.float32)
    return Gradients(loss, grad_x[None], grad_weight, grad_bias)


def _smoothed(log_p: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The smoothed cross-entropy of (copy, item, class), mean over copies, and its gradient."""
    copies, _, classes = log_p.shape
    true = targets[None, :, None].expand(copies, -1, 1)
    wanted = (1 - smoothing) * log_p.gather(2, true).sum()
    loss = -(wanted + smoothing * log_p.mean(dim=2).sum()) / copies
    grad = log_p.exp().sub_(smoothing / classes)
    grad.scatter_add_(2, true, grad.new_full(true.shape, smoothing - 1))
    return loss, grad.div_(copies) if copies > 1 else grad


def _divergence(log_p: Tensor) -> tuple[Tensor, Tensor]:
    """(KL(p||q) + KL(q||p)) / 4 between two copies p and q, and its gradient by the logits."""
    p, q = log_p.exp()
    gap = log_p[0] - log_p[1]
    forward, backward = (p * gap).sum(1, keepdim=True), (q * -gap).sum(1, keepdim=True)
    grad_p = torch.addcmul(-q, p, gap + (1 - forward))
    grad_q = torch.addcmul(-p, q, (1 - backward) - gap)
    return (forward + backward).sum() / 4, torch.stack((grad_p, grad_q)).div_(4)
