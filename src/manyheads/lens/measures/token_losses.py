"""The loss of a sentence: -log p of each token and their mean (atlas T16)."""

import math
from collections.abc import Sequence

from manyheads.lens.labels import label
from manyheads.lens.panels import Cell, Figure, Table

MOST = 100  # listed tokens


def losses(probabilities: Sequence[float]) -> list[float]:
    """Return -log p of each token; the loss is their mean."""
    return [0.0 - math.log(max(p, 1e-300)) for p in probabilities]  # 0, not -0


def loss_table(
    tokens: Sequence[str], probabilities: Sequence[float], *, title: str, given: str
) -> Figure:
    """List the probability of each token and its -log p, the mean at the end.

    `given` describes the condition of the probabilities.
    """
    values = losses(probabilities)
    mean = sum(values) / len(values)
    rows: list[list[Cell]] = [
        [label(token), float(f"{p:.3g}"), round(loss, 3)]
        for token, p, loss in list(zip(tokens, probabilities, values, strict=True))[:MOST]
    ]
    cut = f"; {len(values) - MOST} more tokens are in the mean" if len(values) > MOST else ""
    legend = (
        f"probability of each token {given}; the mean of -log p is the cross-entropy, "
        f"perplexity {math.exp(min(mean, 700)):.3g}{cut}"
    )
    table = Table(title, ["token", "p", "-log p"], [*rows, ["mean", None, round(mean, 3)]])
    return Figure("loss", legend, table)
