"""The loss of a sentence: -log p of each token and their mean (atlas T16)."""

import math
from collections.abc import Sequence

from manyheads.lens.described_figures import figure
from manyheads.lens.labels import label
from manyheads.lens.panels import Cell, Figure

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
    facts = {"title": title, "given": given, "perplexity": math.exp(min(mean, 700)), "cut": cut}
    return figure("loss", facts, rows=[*rows, ["mean", None, round(mean, 3)]])
