"""Charts that are no panels: the loss of a run; reliability and confusions of a classifier."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from manyheads.files import writing
from manyheads.lens.colours import INK
from manyheads.lens.plot.fonts import Fonts
from manyheads.lens.plot.panel_plot import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE = 9.0  # points
# They also differ in brightness and dashes, so they can be distinguished without colours.
LOOKS = {"error": ("#aa3377", "-"), "warning": ("#cc7711", "--"), "note": ("#228899", ":")}


def _axes(width: float, height: float) -> "tuple[Figure, Axes]":
    """Create a figure of this size in inches, and its axes."""
    require()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    return figure, figure.subplots()


def _save(figure: "Figure", path: Path) -> None:
    with writing(path) as file:
        figure.savefig(file, format="png", dpi=120, bbox_inches="tight")


class Mark(NamedTuple):
    """A step that a finding points to."""

    step: int
    name: str
    severity: str


def draw_curve(
    steps: Sequence[int],
    losses: Sequence[float],
    validations: Sequence[tuple[int, float]],
    marks: Sequence[Mark],
    path: Path,
    *,
    title: str = "",
) -> None:
    """Draw losses over steps as a PNG; validations are pairs of a step and its loss."""
    figure, axes = _axes(7.5, 4.2)
    axes.plot(steps, losses, color=INK, linewidth=1.2, label="training loss")
    if validations:
        at, values = zip(*validations, strict=True)
        axes.plot(at, values, "o--", color="#4477aa", markersize=3, linewidth=1, label="validation")
    low, high = axes.get_ylim()
    chosen = sorted(set(marks))
    line = 0.06 * (high - low)  # room above the curve for a name each
    axes.set_ylim(low, high + line * len(chosen))
    for number, mark in enumerate(chosen):
        colour, dashes = LOOKS[mark.severity]
        axes.axvline(mark.step, color=colour, linestyle=dashes, linewidth=1.2)
        side = "left" if mark.step < 0.7 * max(steps) else "right"
        top, name = high + line * (len(chosen) - number - 0.5), f" {mark.name} "
        axes.text(mark.step, top, name, ha=side, va="center", color=colour, fontsize=SIZE)
    axes.set(xlabel="step", ylabel="loss")
    axes.legend(
        fontsize=SIZE, frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1), borderpad=0
    )
    text, font = Fonts([title]).choose(title, SIZE + 2)
    axes.set_title(text, fontproperties=font, loc="left", parse_math=False)
    _save(figure, path)


def draw_reliability(bins: Sequence[Mapping[str, Any]], error: float, path: Path) -> None:
    """Draw accuracy against confidence (Guo et al. 2017, figure 1).

    Bins have low, high, count, confidence and accuracy; the calibration error is in percent.
    """
    figure, axes = _axes(4.5, 4.5)
    axes.plot([0, 1], [0, 1], linestyle="--", color="grey", linewidth=1)
    for bin in bins:
        low, height = bin["low"], bin["accuracy"]
        axes.bar(low, height, bin["high"] - low, align="edge", color="#4477aa", edgecolor="w")
        axes.plot(bin["confidence"], height, "o", color=INK, markersize=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="accuracy")
    axes.set_title(f"expected calibration error {error:.2f}%", fontsize=SIZE + 1)
    _save(figure, path)


def draw_confusion(matrix: np.ndarray, labels: Sequence[str], path: Path) -> None:
    """Draw the counts of true classes (rows) and predicted classes (columns)."""
    fonts = Fonts(labels)
    side = min(3 + 0.35 * len(labels), 14)
    figure, axes = _axes(side, side)
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
            look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SIZE - 2}
            look["color"] = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, f"{matrix[row, column]}", **look)
    _save(figure, path)
