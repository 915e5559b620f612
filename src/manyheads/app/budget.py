"""What explaining an answer by gradients costs, and what is left out for it."""

import torch

from manyheads.lens.integrated_gradients import MOST, STEPS, Integrated

# Floating-point operations that looking may cost unasked: some ten seconds of two CPU cores.
WORTH = {"cpu": 1e12, "other": 1e14}


def limit(device: torch.device) -> float:
    """Look up how many operations looking may cost unasked."""
    return WORTH["cpu" if device.type == "cpu" else "other"]


def worth(cost: float, device: torch.device) -> bool:
    """Say whether integrated gradients are computed unasked, where a step costs so much."""
    return STEPS * cost <= limit(device)


def most_steps(cost: float, device: torch.device) -> int:
    """Choose how many steps integration may take, so that all of them cost what looking may.

    Where the parts do not add up, it begins again with twice as many, so that n steps cost, with
    those before, STEPS + 2 STEPS + ... + n = 2 n - STEPS.
    """
    return min(MOST, int((limit(device) / max(cost, 1.0) + STEPS) / 2))


def left_out(cost: float) -> str:
    """Say what integrated gradients would take."""
    return (
        f"Integrated gradients were left out: they would take {STEPS * cost / 1e12:.1f} trillion "
        "operations. Ask for them with --integrated (in Python: integrated=True)."
    )


def incomplete(parts: Integrated) -> list[str]:
    """Say so where the parts do not add up."""
    if parts.complete:
        return []
    worst = int(parts.missing.abs().argmax())
    return [
        f"Integrated gradients do not add up: {float(parts.missing[worst]):.2g} is missing of a "
        f"difference of {float(parts.difference[worst]):.2g}. More steps than {parts.steps} would "
        "be needed: read them as a sketch."
    ]
