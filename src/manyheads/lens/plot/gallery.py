"""Small multiples: one row per layer, the mean over heads first, then every head."""

from collections.abc import Sequence
from dataclasses import dataclass

from manyheads.lens.colours import INK
from manyheads.lens.plot.canvas import SMALL, Canvas
from manyheads.lens.plot.fonts import Fonts
from manyheads.lens.view.text_view import Matrix

GAP = 0.09


@dataclass(frozen=True)
class Gallery:
    """Thumbnails of matrices[layer][0 = mean, then heads], as large as `width` inches allow.

    Layers may differ in the number of heads; a layer with a single head has one thumbnail.

    With `peak`, all thumbnails share a scale; without, each is scaled from 0 to its own peak.
    """

    fonts: Fonts
    layers: Sequence[str]
    matrices: Sequence[Sequence[Matrix]]
    framed: int  # the row, from 0, whose mean is drawn large elsewhere
    width: float
    shape: tuple[float, float]  # width and height of a thumbnail, up to a factor
    taken_out: Sequence[Sequence[int]]  # of each layer, the heads that have no output
    peak: float | None = None
    limit: float = 1.6  # inches, of a thumbnail's sides

    @property
    def left(self) -> float:
        """The left edge of the first thumbnail."""
        return self.fonts.width(self.layers, SMALL) + 0.12

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of a thumbnail."""
        across = max(map(len, self.matrices))
        width = min((self.width - self.left + GAP) / across - GAP, self.limit)
        ratio = self.shape[1] / self.shape[0]
        return width, min(max(width * ratio, 0.25), self.limit)

    @property
    def height(self) -> float:
        """The total height, with headings and colour scale."""
        return 0.6 + len(self.layers) * (self.size[1] + GAP) - GAP

    def draw(self, canvas: Canvas, x: float, y: float) -> None:
        """Draw with the upper left corner at (x, y)."""
        width, height = self.size
        headed = 0  # columns that have a heading
        for down, (layer, matrices) in enumerate(zip(self.layers, self.matrices, strict=True)):
            top = y + 0.3 + down * (height + GAP)
            canvas.write(x, top + height / 2, layer, va="center_baseline")
            for across, matrix in enumerate(matrices):
                left = x + self.left + across * (width + GAP)
                if across >= headed:
                    headed = across + 1
                    whole = "mean" if max(map(len, self.matrices)) > 1 else "head 1"
                    heading = f"head {across}" if across else whole
                    heading = heading if width > 0.5 else heading.removeprefix("head ")
                    canvas.write(left + width / 2, y + 0.22, heading, ha="center")
                peak = self.peak or peak_of([matrix])
                canvas.matrix(matrix, left, top, width, height, peak)
                if (across or int(len(matrices) == 1)) in self.taken_out[down]:
                    mark, plate = "taken out", {"fc": "white", "lw": 0, "pad": 1.5}
                    at = left + width / 2, top + height / 2, mark if width > 0.7 else "×"
                    canvas.write(*at, colour=INK, ha="center", va="center", bbox=plate)
                if down == self.framed and not across:
                    canvas.rectangle(left, top, width, height, fill=False, ec=INK, lw=1.4)
        key = y + self.height - 0.12
        if self.peak is None:
            note = "each from 0 to its own peak"
            canvas.write(x + self.left, key + 0.06, note, va="center_baseline")
        else:
            canvas.scale(x + self.left, key, self.peak)


def peak_of(matrices: Sequence[Matrix]) -> float:
    """Return the largest weight, or 1 if all are zero."""
    return max((value for matrix in matrices for row in matrix for value in row), default=0) or 1.0
