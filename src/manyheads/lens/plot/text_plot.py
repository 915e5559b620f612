"""Attention plots of a text and its output as PNG files."""

import os
from collections.abc import Sequence

from manyheads.errors import UsageError
from manyheads.lens.colours import INK
from manyheads.lens.labels import labels
from manyheads.lens.plot.canvas import Canvas
from manyheads.lens.plot.fonts import Fonts
from manyheads.lens.plot.gallery import Gallery, peak_of
from manyheads.lens.plot.sheet import BARS, MARGIN, Sheet, thumbnails
from manyheads.lens.view.text_view import MapView, Matrix, TextView, clearest

SMALLEST = 0.1  # weight that is written into its cell
LINK = "#d55e00"  # of alignment: a vermilion that colour-blind readers can distinguish from blue


def plot_text(
    view: TextView,
    path: str | os.PathLike[str],
    *,
    title: str = "",
    kind: str = "decoder cross",
    layer: int | None = None,
) -> None:
    """Draw one layer's mean over heads large, and below it every layer and head small.

    Args:
        view: the view.
        path: of the PNG.
        title: the headline, such as the text and its translation.
        kind: the kind of attention, as in `MapView.kind`.
        layer: the layer to enlarge, from 1; by default the clearest (see `text_view.clearest`).

    Raises:
        UsageError: the view has no such map.
        MissingExtraError: matplotlib, or a font for these texts, is not installed.
    """
    maps = _of_kind(view.maps, kind)
    large = clearest(maps) if layer is None else _of_layer(maps, layer)
    rows, columns = labels(large.rows), labels(large.columns)
    chances = view.probabilities if kind.startswith("decoder") else []
    chances = chances if len(chances) == len(rows) else []  # rows may be groups of tokens
    linked = view.alignment if kind == "decoder cross" and len(rows) == len(view.output) else None
    remarks = view.notes if linked is None else [f"Frames: {linked.legend}", *view.notes]
    fonts = Fonts([title, large.legend, *rows, *columns, *remarks])

    # Measure the texts first, to compute the size of the sheet.
    cell = min(max(8.0 / len(columns), 0.15), 0.42)
    line = min(cell, 0.3)  # the height of a row
    size = min(line * 42, 12.0)
    longest = fonts.width(columns, size)
    angle = 0 if longest < 0.9 * cell else 45 if len(columns) <= 30 else 90
    above = {0: size / 72, 45: 0.71 * longest + size / 72, 90: longest}[angle] + 0.12
    left = MARGIN + fonts.width(rows, size) + 0.14
    right = left + cell * len(columns)
    aside = max(0.71 * longest if angle == 45 else 0.0, 0.2 + BARS if chances else 0.0)
    sheet = Sheet(fonts, title, large.legend, remarks, max(right + aside, 6.0))
    top = sheet.below_title + 0.3 + above
    bottom = top + line * len(rows)
    matrices = [thumbnails(found) for found in maps]
    layers, shape = [f"layer {found.layer}" for found in maps], (right - left, bottom - top)
    peak = peak_of([matrix for row in matrices for matrix in row])
    out = [found.taken_out or [] for found in maps]
    gallery = Gallery(fonts, layers, matrices, maps.index(large), sheet.inner, shape, out, peak)
    canvas = sheet.canvas(bottom + 0.4 + gallery.height)
    peak = peak_of([large.mean])
    canvas.matrix(large.mean, left, top, right - left, bottom - top, peak)
    for row, column, _ in [] if linked is None else linked.links:
        x, y = left + column * cell, top + row * line
        canvas.rectangle(x, y, cell, line, fill=False, ec=LINK, lw=1.4)
    if line >= 0.25:
        _numbers(canvas, large.mean, (left, top, cell, line), peak)
    canvas.row_labels(rows, left, top, line, size)
    for index, text in enumerate(columns):
        middle = left + (index + 0.5) * cell
        if angle == 45:  # begins above the middle of its column
            x, y, side, foot, mode = middle - 0.05, top - 0.1, "left", "center", "anchor"
        else:
            x, y, side, foot, mode = middle, top - 0.08, "center", "bottom", "default"
        canvas.write(x, y, text, size, INK, rotation=angle, rotation_mode=mode, ha=side, va=foot)
    canvas.scale(left, bottom + 0.1, peak)
    if chances:
        canvas.bars(chances, right + 0.2, top, line)
        canvas.write(right + 0.2, bottom + 0.16, "probability", va="center_baseline")
    gallery.draw(canvas, MARGIN, bottom + 0.4)
    canvas.save(path)


def _of_kind(maps: Sequence[MapView], kind: str) -> list[MapView]:
    found = [each for each in maps if each.kind == kind]
    if not found:
        kinds = ", ".join(sorted({repr(each.kind) for each in maps})) or "none"
        raise UsageError(f"There is no map of kind {kind!r}. Kinds in this view: {kinds}.")
    return found


def _of_layer(maps: Sequence[MapView], layer: int) -> MapView:
    for found in maps:
        if found.layer == layer:
            return found
    layers = ", ".join(str(found.layer) for found in maps)
    raise UsageError(f"There is no layer {layer}. Layers of {maps[0].kind!r} attention: {layers}.")


def _numbers(canvas: Canvas, weights: Matrix, first: Sequence[float], peak: float) -> None:
    """Write weights that are not small into their cells; `first` is the box of the first cell."""
    left, top, width, height = first
    for down, row in enumerate(weights):
        for across, weight in enumerate(row):
            if weight >= SMALLEST:
                x, y = left + (across + 0.5) * width, top + (down + 0.5) * height
                canvas.number(x, y, weight, peak)
