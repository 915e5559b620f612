"""The cost of explaining an answer by gradients, and its limit."""

from collections.abc import Callable

import torch

from manyheads.lens.attribution.integrated_gradients import MOST, STEPS, Integrated

# Floating-point operations of a client's gradients: some ten seconds of two CPU cores.
CPU, OTHER = 1e12, 1e14


def limit(device: torch.device) -> float:
    """Return the most operations that count as cheap."""
    return CPU if device.type == "cpu" else OTHER


def integrate(
    integrated: bool | None,
    cost: float,
    device: torch.device,
    run: Callable[[int], Integrated],
    *,
    alone: bool,
) -> tuple[Integrated | None, list[str]]:
    """Integrate gradients if asked or `alone`, and where None if it is cheap; note what is missing.

    `cost` is that of a step; `run` takes the most steps; `alone`: nothing else explains the answer.
    """
    if not (alone or (STEPS * cost <= limit(device) if integrated is None else integrated)):
        note = (
            f"Integrated gradients were left out: they would take {STEPS * cost / 1e12:.1f} "
            "trillion operations. A smaller input takes fewer; without a server, "
            "`integrated=True` computes them all the same."
        )
        return None, [note] if integrated is None else []
    parts = run(most_steps(cost, device))
    if parts.complete:
        return parts, []
    worst = int(parts.missing.abs().argmax())
    return parts, [
        f"Integrated gradients do not add up: {float(parts.missing[worst]):.2g} is missing of a "
        f"difference of {float(parts.difference[worst]):.2g}. More steps than {parts.steps} would "
        "be needed: they are incomplete, do not rely on these."
    ]


def most_steps(cost: float, device: torch.device) -> int:
    """Return the maximum number of integration steps within the limit.

    Where the parts do not add up, it begins again with twice as many, so that n steps cost, with
    those before, STEPS + 2 STEPS + ... + n = 2 n - STEPS.
    """
    return min(MOST, int((limit(device) / max(cost, 1.0) + STEPS) / 2))
