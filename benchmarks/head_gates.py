"""Hard concrete gates on heads, and the order in which they close (Voita et al. 2019, section 5).

Louizos et al. 2018 ("Learning sparse neural networks through L0 regularization") draw a gate z of
[0, 1] that is exactly 0 or 1 with some probability, so that the expected number of open gates has
a gradient. Voita et al. choose one weight of that penalty for each number of heads; here it grows
from 0 while the model is trained on, which gives an order of all heads in one run.
"""

import math
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from manyheads.labs.experiments.pruning_lab import Head
from manyheads.nn.editing.edits import edit

BETA, LOW, HIGH = 2 / 3, -0.1, 1.1  # Louizos et al. 2018, section 4: temperature and stretch
GATE_RATE, WEIGHT_RATE = 0.1, 1e-4  # of Adam; a gate has to move by about 5


def drawn(log_alpha: Tensor, uniform: Tensor) -> Tensor:
    """Draw gates from uniform numbers of (0, 1), equations 10 and 11."""
    noise = uniform.log() - (1 - uniform).log()
    return (((noise + log_alpha) / BETA).sigmoid() * (HIGH - LOW) + LOW).clamp(0, 1)


def open_chance(log_alpha: Tensor) -> Tensor:
    """Compute the probability that a gate is not 0, equation 12."""
    return (log_alpha - BETA * math.log(-LOW / HIGH)).sigmoid()


def closed(log_alpha: Tensor) -> Tensor:
    """Tell which gates are 0 when nothing is drawn, equation 13."""
    return log_alpha.sigmoid() * (HIGH - LOW) + LOW <= 0


def closing_order(
    heads: Sequence[Head],
    weights: Iterable[nn.Parameter],
    loss: Callable[[int], Tensor],
    steps: int,
    most: float,
) -> list[Head]:
    """Train gates and weights together, under a penalty that grows; list heads as they close.

    Args:
        heads: which have a gate.
        weights: of the model, which are changed.
        loss: of the batch of a step, nats a token; it runs the model once.
        steps: how many.
        most: the penalty of an open gate in the last step, nats a token.

    Returns:
        All heads, the first to close first; those that stay open last, the most open at the end.
    """
    log_alpha = nn.Parameter(torch.full((len(heads),), 2.0))  # 88% of a sigmoid: nearly open
    optimizer = torch.optim.Adam([log_alpha], lr=GATE_RATE)
    optimizer.add_param_group({"params": list(weights), "lr": WEIGHT_RATE})
    random = torch.Generator().manual_seed(1)
    gone: list[Head] = []
    for step in range(steps):
        uniform = torch.rand(len(heads), generator=random).clamp(1e-6, 1 - 1e-6)
        gates = drawn(log_alpha, uniform)
        with edit() as changes:
            for head, gate in zip(heads, gates, strict=True):
                changes.head(*head).apply(gate.mul)
            penalty = most * step / steps * open_chance(log_alpha).sum()
            total = loss(step) + penalty
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        for head, is_closed in zip(heads, closed(log_alpha).tolist(), strict=True):
            if is_closed and head not in gone:
                gone.append(head)
                print(f"step {step:4}: {len(gone):2} closed, {head}")
    openness = dict(zip(heads, log_alpha.tolist(), strict=True))
    return gone + sorted((head for head in heads if head not in gone), key=openness.__getitem__)
