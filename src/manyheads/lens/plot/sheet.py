"""Parts of every attention plot: headline, labels, numbers in cells, notes at the bottom."""

from collections.abc import Sequence

from manyheads.lens.colours import INK
from manyheads.lens.plot.canvas import SMALL, Canvas
from manyheads.lens.plot.fonts import Fonts
from manyheads.lens.view.text_view import MapView, Matrix

# All lengths are inches, all text sizes points.
MARGIN = 0.4
TITLE = 15.0
HEADLINE = 100  # characters
BARS = 1.5  # probability bars with their numbers
LINE = 0.17  # of notes


def head(canvas: Canvas, title: str, legend: str) -> None:
    """Write the title, if there is one, and the legend."""
    if title:
        canvas.write(MARGIN, MARGIN, title, TITLE, INK, va="top")
    canvas.write(MARGIN, MARGIN + (0.4 if title else 0.0), legend, va="top")


def row_labels(
    canvas: Canvas, names: Sequence[str], left: float, top: float, step: float, size: float
) -> None:
    """Write names right-aligned at `left`, one below the other."""
    for index, text in enumerate(names):
        middle = top + (index + 0.5) * step
        canvas.write(left - 0.1, middle, text, size, INK, ha="right", va="center_baseline")


def write_number(canvas: Canvas, x: float, y: float, weight: float, peak: float) -> None:
    """Write a weight into its cell, in a colour with enough contrast."""
    ink = "white" if abs(weight) > 0.5 * peak else INK
    shown = round(weight, 2) + 0.0  # no minus in front of 0.00
    canvas.write(x, y, f"{shown:.2f}", 7.5, ink, ha="center", va="center_baseline")


def thumbnails(found: MapView) -> list[Matrix]:
    """Return the mean over heads and the heads; of a single head, only that one."""
    return [found.mean, *(found.weights if len(found.weights) > 1 else [])]


def wrapped(texts: Sequence[str], fonts: Fonts, width: float) -> list[str]:
    """Wrap texts to a width in inches."""
    lines = []
    for text in texts:
        line = ""
        for word in text.split():
            longer = f"{line} {word}".strip()
            if line and fonts.width([longer], SMALL) > width:
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return lines


def write_notes(canvas: Canvas, lines: Sequence[str], top: float) -> None:
    """Write lines of small print, one below the other."""
    for number, line in enumerate(lines):
        canvas.write(MARGIN, top + 0.14 + number * LINE, line, va="top")
