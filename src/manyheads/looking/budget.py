"""The cost of explaining an answer by gradients, and its limit."""

import torch

from manyheads.lens.attribution.integrated_gradients import MOST, STEPS, Integrated

# Floating-point operations of a client's gradients: some ten seconds of two CPU cores.
CPU, OTHER = 1e12, 1e14


def limit(device: torch.device) -> float:
    """Return the most operations that count as cheap."""
    return CPU if device.type == "cpu" else OTHER


def integrates(integrated: bool | None, cost: float, device: torch.device, *, alone: bool) -> bool:
    """Tell whether to integrate gradients: if asked or `alone`, and where None if it is cheap.

    `cost` is that of a step; `alone`: nothing else explains the answer.
    """
    return alone or (STEPS * cost <= limit(device) if integrated is None else integrated)


def most_steps(cost: float, device: torch.device) -> int:
    """Return the maximum number of integration steps within the limit.

    Where the parts do not add up, it begins again with twice as many, so that n steps cost, with
    those before, STEPS + 2 STEPS + ... + n = 2 n - STEPS.
    """
    return min(MOST, int((limit(device) / max(cost, 1.0) + STEPS) / 2))


def left_out(cost: float) -> str:
    """Write the cost of integrated gradients that were left out."""
    return (
        f"Integrated gradients were left out: they would take {STEPS * cost / 1e12:.1f} trillion "
        "operations. A smaller input takes fewer; without a server, `integrated=True` computes "
        "them all the same."
    )


def incomplete(parts: Integrated) -> list[str]:
    """Write a note if the parts do not add up."""
    if parts.complete:
        return []
    worst = int(parts.missing.abs().argmax())
    return [
        f"Integrated gradients do not add up: {float(parts.missing[worst]):.2g} is missing of a "
        f"difference of {float(parts.difference[worst]):.2g}. More steps than {parts.steps} would "
        "be needed: they are incomplete, do not rely on these."
    ]
