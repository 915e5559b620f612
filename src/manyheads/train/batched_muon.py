"""Muon (Jordan et al. 2024) with all matrices of one shape in one product."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.train.device import multiplies_bf16

QUINTIC = (3.4445, -4.7750, 2.0315)


def orthogonalized(
    x: Float[Tensor, "matrix row column"],
    coefficients: tuple[float, float, float],
    iterations: int,
    eps: float,
) -> Float[Tensor, "matrix row column"]:
    """Approximate U V^T of the singular value decomposition of each matrix.

    Newton-Schulz iterations of a quintic with these coefficients; five of Jordan et al.'s leave the
    singular values about within 0.5..1.5. In bf16, which suffices, where the device has it.
    """
    a, b, c = coefficients
    tall = x.shape[1] > x.shape[2]
    y = x.bfloat16() if multiplies_bf16(x.device) else x.float()
    y = y.mT if tall else y
    y = y / y.norm(dim=(1, 2), keepdim=True).clamp(min=eps)
    for _ in range(iterations):
        gram = y @ y.mT
        y = torch.baddbmm(y, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), y, beta=a)
    return y.mT if tall else y


class Muon(torch.optim.Optimizer):
    """torch's Muon, which takes matrices alone, for filters of convolutions, too.

    A filter is a row of a matrix, all that it sees its columns (Jordan et al. 2024). A
    Transformer's many matrices have few shapes, and a GPU takes longer to be told of forty small
    products than to compute them.
    """

    def __init__(self, params: Iterable[Any], *, lr: float, weight_decay: float) -> None:
        """Take groups of parameters of two dimensions and more; the other settings are torch's."""
        settings = {"momentum": 0.95, "ns_coefficients": QUINTIC, "ns_steps": 5, "eps": 1e-7}
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, **settings})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient (Nesterov momentum, decoupled weight decay)."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for p in group["params"]:
                if p.grad is not None:
                    by_shape[p.shape].append(p)
                    if "momentum_buffer" not in self.state[p]:
                        self.state[p]["momentum_buffer"] = torch.zeros_like(p.grad)
            settings = group["ns_coefficients"], group["ns_steps"], group["eps"]
            for matrices in by_shape.values():
                gradients = [p.grad for p in matrices if p.grad is not None]
                momenta = [self.state[p]["momentum_buffer"] for p in matrices]
                torch._foreach_lerp_(momenta, gradients, 1 - group["momentum"])
                directions = torch._foreach_lerp(gradients, momenta, group["momentum"])
                stacked = torch.stack(directions)
                rows = stacked.flatten(2)
                steps = orthogonalized(rows, *settings).to(matrices[0].dtype)
                torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
                # As large as a step of AdamW (Liu et al. 2025, equation 4).
                rate = group["lr"] * 0.2 * max(rows.shape[1:]) ** 0.5
                torch._foreach_add_(matrices, list(steps.reshape(stacked.shape)), alpha=-rate)
