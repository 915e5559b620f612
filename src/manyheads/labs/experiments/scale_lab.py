"""T5a, E3: why the dot products of attention are divided by the square root of their width.

Two vectors of d numbers with mean 0 and variance 1 have a dot product of variance d. A softmax
over such scores saturates as d grows, and then its gradient vanishes.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from manyheads.labs.bench import Bench, Measured, Outcome, Size
from manyheads.labs.findings import mean, values, verdict
from manyheads.lens.panels import number
from manyheads.nn.attention.softmax import attention_weights, normalise
from manyheads.streams import stream

# The package's attention divides by sqrt(d); the other forms do not scale, or multiply.
FORMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "divided by √d": attention_weights,
    "plain": lambda q, k: normalise(q @ k.T),
    "times √d": lambda q, k: normalise(q @ k.T * math.sqrt(q.shape[-1])),
}


def entropy(weights: Tensor) -> float:
    """Mean entropy of the rows relative to its maximum, the log of the number of keys."""
    bits = torch.special.entr(weights).sum(dim=-1)
    return (bits / math.log(weights.shape[-1])).mean().item()


def gradient(weights: Tensor) -> float:
    """Mean Frobenius norm of the softmax's Jacobian, diag(p) - p p^T."""
    square, cube = weights.square().sum(dim=-1), weights.pow(3).sum(dim=-1)
    return (square - 2 * cube + square.square()).clamp_min(0).sqrt().mean().item()


def measure(width: int, keys: int, queries: int, seed: int) -> Measured:
    """Draw queries and keys, and measure the softmax of each form."""
    random = torch.Generator().manual_seed(stream(seed, "lab scale", width))
    q = torch.randn(queries, width, generator=random, dtype=torch.float64)
    k = torch.randn(keys, width, generator=random, dtype=torch.float64)
    measured: Measured = {"deviation": (q @ k.T).std().item()}
    for name, form in FORMS.items():
        weights = form(q, k)
        measured[name] = {
            "entropy": entropy(weights),
            "largest": weights.amax(dim=-1).mean().item(),
            "gradient": gradient(weights),
        }
    return measured


def conclude(measured: dict[int, list[Measured]]) -> str:
    """Compare gradients divided and undivided at every width."""
    last = max(measured)

    def of(form: str, what: str, width: int) -> list[float]:
        return values(measured[width], form, what)

    against = {
        width: verdict(of("plain", "gradient", width), of("divided by √d", "gradient", width))
        for width in sorted(measured)
    }

    def widths(sign: int) -> str:
        return ", ".join(str(width) for width, each in against.items() if each == sign) or "none"

    worse = verdict(of("times √d", "gradient", last), of("plain", "gradient", last)) < 0
    return (
        f"Dot products of width {last} deviate by {mean(measured[last], 'deviation')} (√d is "
        f"{number(math.sqrt(last))}). Undivided, the softmax's gradient is larger than divided by "
        f"√d at the widths {widths(1)}, and smaller at the widths {widths(-1)}: at {last} it is "
        f"{mean(measured[last], 'plain', 'gradient')} with a largest weight of "
        f"{mean(measured[last], 'plain', 'largest')}, against a gradient of "
        f"{mean(measured[last], 'divided by √d', 'gradient')}; multiplying instead makes it "
        f"{'smaller still' if worse else 'no smaller than leaving it out'} there."
    )


def run(bench: Bench, size: Size) -> Outcome:
    """Measure each width with each seed."""
    measured = bench.seeded("width {}", size.widths, measure, size.keys, size.queries)
    by_form = {form: {n: [m[form] for m in f] for n, f in measured.items()} for form in FORMS}
    return conclude(measured), {"measured": measured, "by_form": by_form}
