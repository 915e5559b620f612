"""A canvas measured in inches from its upper left corner, saved as a PNG.

It uses matplotlib's objects without pyplot and sets every property explicitly: it neither changes
a user's matplotlib settings nor depends on them.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from manyheads.files import writing
from manyheads.lens.colours import BAR, FAINT, INK, LINE, PAPER, TRACK, signed_shade
from manyheads.lens.plot.fonts import Fonts
from manyheads.lens.view.text_view import Matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DPI = 160
SMALL = 8.5  # points
CELLS: dict[str, Any] = {"vmin": 0, "aspect": "auto", "interpolation": "nearest"}


class Canvas:
    """A matplotlib Figure of width x height inches."""

    def __init__(self, width: float, height: float, fonts: Fonts) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.figure import Figure

        self.width, self.height, self.fonts = width, height, fonts
        self.figure = Figure(figsize=(width, height))
        FigureCanvasAgg(self.figure)
        self.ramp = LinearSegmentedColormap.from_list("paper", PAPER)
        self.sheet = self.axes(0, 0, width, height)
        self.sheet.set(xlim=(0, width), ylim=(height, 0), zorder=2)  # writing lies over images
        self.sheet.set_autoscale_on(False)

    def axes(self, x: float, y: float, width: float, height: float) -> "Axes":
        """Add axes without decoration, with their upper left corner at (x, y)."""
        across, down = self.width, self.height
        box = x / across, (down - y - height) / down, width / across, height / down
        axes = self.figure.add_axes(box)
        axes.set_axis_off()
        return axes

    def write(
        self, x: float, y: float, text: str, size: float = SMALL, colour: str = FAINT, **layout: Any
    ) -> None:
        """Write text at (x, y); `layout` are matplotlib's alignment and rotation arguments."""
        clean, font = self.fonts.choose(text, size)
        self.sheet.text(
            x, y, clean, fontproperties=font, color=colour, parse_math=False, usetex=False, **layout
        )

    def row_labels(
        self, names: Sequence[str], left: float, top: float, step: float, size: float
    ) -> None:
        """Write names right-aligned at `left`, one below the other."""
        for index, text in enumerate(names):
            middle = top + (index + 0.5) * step
            self.write(left - 0.1, middle, text, size, INK, ha="right", va="center_baseline")

    def number(self, x: float, y: float, weight: float, peak: float) -> None:
        """Write a weight into its cell, in a colour with enough contrast."""
        ink = "white" if abs(weight) > 0.5 * peak else INK
        shown = round(weight, 2) + 0.0  # no minus in front of 0.00
        self.write(x, y, f"{shown:.2f}", 7.5, ink, ha="center", va="center_baseline")

    def rectangle(self, x: float, y: float, width: float, height: float, **look: Any) -> None:
        """Draw a rectangle; `look` are arguments of matplotlib's Rectangle."""
        from matplotlib.patches import Rectangle

        self.sheet.add_patch(Rectangle((x, y), width, height, clip_on=False, **look))

    def matrix(
        self, weights: Matrix, x: float, y: float, width: float, height: float, peak: float
    ) -> None:
        """Draw weights as shades, from white at 0 to the darkest at `peak`."""
        # On the sheet itself: separate axes for each matrix would be slow.
        box = (x, x + width, y + height, y)
        self.sheet.imshow(weights, cmap=self.ramp, vmax=peak, extent=box, **CELLS)
        self.rectangle(x, y, width, height, fill=False, ec=LINE, lw=0.6)

    def draw_image(self, image: Tensor, x: float, y: float, width: float, height: float) -> "Axes":
        """Draw an image, grey or in colour, 0..255; return its axes, 0..1 both ways."""
        axes = self.axes(x, y, width, height)
        axes.imshow(image.numpy(), cmap="gray", vmax=255, extent=(0, 1, 1, 0), **CELLS)
        return axes

    def scale(self, x: float, y: float, peak: float, *, signed: bool = False) -> None:
        """Draw the colour scale from 0 to the peak, or on both sides of 0."""
        least, most = ("0", f"{peak:.2f}")
        if signed:
            least, most = f"\N{MINUS SIGN}{peak:.2g}", f"{peak:.2g}"
        left = x + self.fonts.width([least], SMALL) + 0.06
        self.write(x, y + 0.06, least, va="center_baseline")
        self.write(left + 1.16, y + 0.06, most, va="center_baseline")
        if not signed:
            self.matrix([[step / 63 for step in range(64)]], left, y, 1.1, 0.11, 1.0)
            return
        for step in range(31):
            colour = signed_shade((step - 15) / 15)
            self.rectangle(left + step * 1.1 / 31, y, 1.1 / 31, 0.11, fc=colour, lw=0)
        self.rectangle(left, y, 1.1, 0.11, fill=False, ec=LINE, lw=0.6)

    def bars(self, values: Sequence[float], x: float, y: float, step: float) -> None:
        """Draw probabilities as a column of bars, `step` apart; full length is 1 inch."""
        for index, value in enumerate(values):
            middle = y + (index + 0.5) * step
            thick = min(0.5 * step, 0.16)
            self.rectangle(x, middle - thick / 2, 1.0, thick, fc=TRACK, lw=0)
            self.rectangle(x, middle - thick / 2, value, thick, fc=BAR, lw=0)
            if step >= 0.14:
                size = min(SMALL, 42 * step)
                self.write(x + 1.08, middle, f"{value:.2f}", size, INK, va="center_baseline")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a PNG; create its folder if necessary."""
        with writing(path) as file:
            self.figure.savefig(file, format="png", dpi=DPI, facecolor="white")
