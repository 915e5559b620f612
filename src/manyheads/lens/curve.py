"""The loss curve of a run, with marks where something is worth a look."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from manyheads.errors import MissingExtraError
from manyheads.lens.colours import INK
from manyheads.lens.fonts import Fonts

WIDTH, HEIGHT = 7.5, 4.2  # inches
SIZE = 9.0  # points
# Differ in brightness too, and each has its own dashes: they can be told apart without colours.
LOOKS = {"error": ("#aa3377", "-"), "warning": ("#cc7711", "--"), "note": ("#228899", ":")}


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
    """Draw losses over steps as a PNG.

    Args:
        steps: of the lines of the log.
        losses: the mean training loss of each.
        validations: steps with the validation loss.
        marks: drawn as vertical lines with their names.
        path: of the PNG.
        title: the headline.

    Raises:
        MissingExtraError: matplotlib is not installed, or no font has the title's letters.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(package="matplotlib", extra="plot") from None
    figure = Figure(figsize=(WIDTH, HEIGHT))
    axes = figure.subplots()
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
        left = mark.step < 0.7 * max(steps)
        axes.text(
            mark.step,
            high + line * (len(chosen) - number - 0.5),
            f" {mark.name} ",
            ha="left" if left else "right",
            va="center",
            color=colour,
            fontsize=SIZE,
        )
    axes.set(xlabel="step", ylabel="loss")
    axes.legend(
        fontsize=SIZE, frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1), borderpad=0
    )
    text, font = Fonts([title]).choose(title, SIZE + 2)
    axes.set_title(text, fontproperties=font, loc="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, bbox_inches="tight")
