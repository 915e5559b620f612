"""Muon (Jordan et al. 2024) with all matrices of one shape in one product."""

from collections import defaultdict
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of Jordan et al.'s quintic: steepest at 0
ITERATIONS = 5
MOMENTUM = 0.95


def orthogonalized(
    x: Float[Tensor, "matrix row column"],
) -> Float[Tensor, "matrix row column"]:
    """Approximate U V^T of the singular value decomposition of each matrix, in bf16.

    Five Newton-Schulz iterations; the singular values of the result lie about within 0.5..1.5.
    """
    a, b, c = COEFFICIENTS
    tall = x.shape[1] > x.shape[2]
    y = x.bfloat16()
    y = y.mT if tall else y
    y = y / y.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = y @ y.mT
        y = torch.baddbmm(y, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), y, beta=a)
    return y.mT if tall else y


class Muon(torch.optim.Muon):
    """torch's Muon, state included; a Transformer's many matrices have few shapes.

    A GPU takes longer to be told of forty small products than to compute them.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient (Nesterov momentum, decoupled weight decay)."""
        for group in self.param_groups:
            matrices = [p for p in group["params"] if p.grad is not None]
            if not matrices:
                continue
            for p in matrices:
                if "momentum_buffer" not in self.state[p]:
                    self.state[p]["momentum_buffer"] = torch.zeros_like(p.grad)
            gradients = [p.grad for p in matrices]
            momenta = [self.state[p]["momentum_buffer"] for p in matrices]
            torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
            directions = torch._foreach_lerp(gradients, momenta, MOMENTUM)
            torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
            by_shape: dict[torch.Size, list[int]] = defaultdict(list)
            for number, p in enumerate(matrices):
                by_shape[p.shape].append(number)
            for shape, numbers in by_shape.items():
                steps = orthogonalized(torch.stack([directions[number] for number in numbers]))
                # As large as a step of AdamW (Liu et al. 2025, equation 4).
                rate = group["lr"] * 0.2 * max(shape) ** 0.5
                _add([matrices[number] for number in numbers], steps, -rate)


def _add(matrices: Sequence[Tensor], steps: Tensor, factor: float) -> None:
    torch._foreach_add_(list(matrices), list(steps.to(matrices[0].dtype)), alpha=factor)
