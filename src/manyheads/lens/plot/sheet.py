"""Parts of every attention plot: headline, labels, numbers in cells, notes at the bottom."""

from collections.abc import Sequence
from textwrap import wrap

from manyheads.lens.colours import INK
from manyheads.lens.plot.canvas import SMALL, Canvas
from manyheads.lens.plot.fonts import Fonts
from manyheads.lens.view.text_view import MapView, Matrix

# All lengths are inches, all text sizes points.
MARGIN = 0.4
TITLE = 15.0
HEADLINE = 100  # characters of a line, of which there are at most three
BARS = 1.5  # probability bars with their numbers
LINE = 0.17  # of notes


class Sheet:
    """The frame of a plot: title and legend above it, notes below, as wide as these need."""

    def __init__(
        self, fonts: Fonts, title: str, legend: str, remarks: Sequence[str], right: float
    ) -> None:
        """Measure the texts; `right` is where the plot ends, in inches from the left."""
        self.fonts, self.legend = fonts, legend
        self.title = wrap(" ".join(title.split()), HEADLINE, max_lines=3, placeholder="…")
        headline = max(fonts.width(self.title, TITLE), fonts.width([legend], SMALL))
        self.width = max(right, MARGIN + headline) + MARGIN
        self.below_title = MARGIN + (0.1 + 0.3 * len(self.title) if title else 0.0)
        self.notes = _wrapped(remarks, fonts, self.inner)

    @property
    def inner(self) -> float:
        """The width between the margins."""
        return self.width - 2 * MARGIN

    def canvas(self, foot: float) -> Canvas:
        """Write title, legend, and the notes from `foot` on."""
        canvas = Canvas(self.width, foot + LINE * len(self.notes) + MARGIN, self.fonts)
        for number, line in enumerate(self.title):
            canvas.write(MARGIN, MARGIN + 0.3 * number, line, TITLE, INK, va="top")
        canvas.write(MARGIN, self.below_title, self.legend, va="top")
        for number, line in enumerate(self.notes):
            canvas.write(MARGIN, foot + 0.14 + number * LINE, line, va="top")
        return canvas


def thumbnails(layer: MapView) -> list[Matrix]:
    """Return the mean over heads and the heads; of a single head, only that one."""
    return [layer.mean, *(layer.weights if len(layer.weights) > 1 else [])]


def _wrapped(texts: Sequence[str], fonts: Fonts, width: float) -> list[str]:
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
