"""Charts of a classifier: reliability diagram and confusion matrix."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyheads.files import writing
from manyheads.lens.colours import INK
from manyheads.lens.plot.fonts import Fonts
from manyheads.lens.plot.panel_plot import axes_of

SIZE = 9.0  # points


def draw_reliability(bins: Sequence[Mapping[str, Any]], error: float, path: Path) -> None:
    """Draw accuracy against confidence (Guo et al. 2017, figure 1).

    Bins have low, high, count, confidence and accuracy; the calibration error is in percent.
    """
    figure, axes = axes_of(4.5, 4.5)
    axes.plot([0, 1], [0, 1], linestyle="--", color="grey", linewidth=1)
    for each in bins:
        width = each["high"] - each["low"]
        axes.bar(each["low"], each["accuracy"], width, align="edge", color="#4477aa", edgecolor="w")
        axes.plot(each["confidence"], each["accuracy"], "o", color=INK, markersize=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="accuracy")
    axes.set_title(f"expected calibration error {error:.2f}%", fontsize=SIZE + 1)
    with writing(path) as file:
        figure.savefig(file, format="png", dpi=120, bbox_inches="tight")


def draw_confusion(matrix: np.ndarray, labels: Sequence[str], path: Path) -> None:
    """Draw the counts of true classes (rows) and predicted classes (columns)."""
    fonts = Fonts(labels)
    side = min(3 + 0.35 * len(labels), 14)
    figure, axes = axes_of(side, side)
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    places = range(len(labels))
    axes.set(xlabel="answer", ylabel="class")
    chosen = [fonts.choose(label, SIZE) for label in labels]
    for axis, turn in ((axes.xaxis, 90), (axes.yaxis, 0)):
        axis.set_ticks(places, [name for name, _ in chosen], rotation=turn, parse_math=False)
        for tick, (_, font) in zip(axis.get_ticklabels(), chosen, strict=True):
            tick.set_fontproperties(font)
    if len(labels) <= 20:
        for row, column in np.argwhere(matrix > 0):
            colour = "white" if shares[row, column] > 0.5 else "black"
            axes.text(
                column,
                row,
                f"{matrix[row, column]}",
                ha="center",
                va="center",
                color=colour,
                fontsize=SIZE - 2,
            )
    with writing(path) as file:
        figure.savefig(file, format="png", dpi=120, bbox_inches="tight")
