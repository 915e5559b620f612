"""Integrated gradients: the share of each input number in a score, from a baseline to the input.

Source: Sundararajan, Taly & Yan 2017, "Axiomatic Attribution for Deep Networks", section 3.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.cancellation import raise_if_cancelled

STEPS = 32
MOST = 256  # steps, where fewer do not add up
PASSES = 8  # points of the path that go through a model together
TOLERANCE = 0.05  # largest missing share of the difference

Input = Float[Tensor, "*input"]
Scores = Callable[[Float[Tensor, "point *input"]], Float[Tensor, "point score"]]


@dataclass(frozen=True, slots=True, eq=False)
class Integrated:
    """Parts of each score, one for each number of the input, and what they add up to."""

    parts: Float[Tensor, "score *input"]
    difference: Float[Tensor, " score"]  # of the scores at the input and at the baseline
    steps: int

    @property
    def missing(self) -> Float[Tensor, " score"]:
        """The difference less the sum of the parts: 0 if the sum over the steps were exact."""
        return self.difference - self.parts.flatten(1).sum(dim=1)

    @property
    def complete(self) -> bool:
        """Whether the parts add up as the axiom of completeness asks for (proposition 1)."""
        return bool((self.missing.abs() <= TOLERANCE * self.difference.abs().clamp_min(0.1)).all())


def integrated_gradients(
    scores: Scores, x: Input, baseline: Input, *, steps: int = STEPS, passes: int = PASSES
) -> Integrated:
    """Integrate the gradients of scores along the straight line from a baseline to x (equation 1).

    The integral is a Gauss-Legendre sum, which needs the fewest steps for a smooth function.
    `scores` computes the scores of stacked inputs, each by itself; `passes` points at a time.
    """
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    alphas = torch.tensor((nodes + 1) / 2, dtype=x.dtype, device=x.device)
    shares = torch.tensor(weights / 2, dtype=x.dtype, device=x.device)
    way = x - baseline
    total: list[Tensor] = []
    with torch.enable_grad():
        for alpha, share in zip(alphas.split(passes), shares.split(passes), strict=True):
            raise_if_cancelled()
            ones = [1] * x.ndim
            points = (baseline + alpha.view(-1, *ones) * way).detach().requires_grad_()
            found = scores(points)
            slopes = [
                torch.autograd.grad(each.sum(), points, retain_graph=True)[0]
                for each in found.unbind(dim=1)
            ]
            part = torch.stack([(share.view(-1, *ones) * slope).sum(dim=0) for slope in slopes])
            total.append(part.detach())
    with torch.no_grad():
        first, last = scores(torch.stack((baseline, x)))
    return Integrated(torch.stack(total).sum(dim=0) * way, last - first, steps)


def until_complete(scores: Scores, x: Input, baseline: Input, *, most: int = MOST) -> Integrated:
    """Integrate in `STEPS` steps, and in twice as many, up to `most`, until the parts add up.

    Near a baseline of zeros a layer norm divides by little, and the gradients change fast.
    """
    steps = STEPS
    found = integrated_gradients(scores, x, baseline, steps=steps)
    while not found.complete and 2 * steps <= most:
        steps *= 2
        found = integrated_gradients(scores, x, baseline, steps=steps)
    return found
