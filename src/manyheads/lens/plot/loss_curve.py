"""The loss curve of a run, with marks at the steps of findings."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from manyheads.files import writing
from manyheads.lens.colours import INK
from manyheads.lens.plot.fonts import Fonts
from manyheads.lens.plot.panel_plot import axes_of

WIDTH, HEIGHT = 7.5, 4.2  # inches
SIZE = 9.0  # points
# They also differ in brightness and dashes, so they can be distinguished without colours.
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
    """Draw losses over steps as a PNG; validations are pairs of a step and its loss."""
    figure, axes = axes_of(WIDTH, HEIGHT)
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
    axes.set_title(text, fontproperties=font, loc="left", parse_math=False)
    with writing(path) as file:
        figure.savefig(file, format="png", dpi=120, bbox_inches="tight")
