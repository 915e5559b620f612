"""Attention pictures as PNG files: one for a text and its translation, one for an image."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.canvas import SMALL, Canvas
from manyheads.lens.colours import INK, shade
from manyheads.lens.fonts import Fonts
from manyheads.lens.gallery import Gallery, peak_of
from manyheads.lens.labels import cut, label, labels
from manyheads.lens.view import ImageView, MapView, Matrix, TextView, clearest

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes

# All lengths are inches, all text sizes points.
MARGIN = 0.4
TITLE = 15.0
HEADLINE = 100  # characters
BARS = 1.5  # probability bars with their numbers


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
        view: what to draw.
        path: of the PNG.
        title: the headline, such as the text and its translation.
        kind: which attention, as in `MapView.kind`.
        layer: the one to enlarge, from 1; by default the clearest (see `view.clearest`).

    Raises:
        UsageError: the view has no such map.
        MissingExtraError: matplotlib, or a font for these texts, is not installed.
    """
    maps = _of_kind(view.maps, kind)
    large = clearest(maps) if layer is None else _of_layer(maps, layer)
    rows, columns = labels(large.rows), labels(large.columns)
    title = cut(" ".join(title.split()), HEADLINE)
    chances = view.probabilities if kind.startswith("decoder") else []
    fonts = Fonts([title, large.legend, *rows, *columns])

    # Measure first, so that the sheet fits what is written on it.
    cell = min(max(8.0 / len(columns), 0.15), 0.42)
    line = min(cell, 0.3)  # the height of a row
    size = min(line * 42, 12.0)
    longest = fonts.width(columns, size)
    angle = 0 if longest < 0.9 * cell else 45 if len(columns) <= 30 else 90
    above = {0: size / 72, 45: 0.71 * longest + size / 72, 90: longest}[angle] + 0.12
    left = MARGIN + fonts.width(rows, size) + 0.14
    right = left + cell * len(columns)
    aside = max(0.71 * longest if angle == 45 else 0.0, 0.2 + BARS if chances else 0.0)
    headline = max(fonts.width([title], TITLE), fonts.width([large.legend], SMALL))
    width = max(right + aside, MARGIN + headline, 6.0) + MARGIN
    top = MARGIN + (0.4 if title else 0.0) + 0.3 + above
    bottom = top + line * len(rows)
    matrices = [_thumbnails(found) for found in maps]
    gallery = Gallery(
        fonts,
        [found.layer for found in maps],
        matrices,
        large.layer,
        width - 2 * MARGIN,
        (cell * len(columns), line * len(rows)),
        peak_of([matrix for row in matrices for matrix in row]),
    )
    height = bottom + 0.4 + gallery.height + MARGIN

    canvas = Canvas(width, height, fonts)
    _head(canvas, title, large.legend)
    peak = peak_of([large.mean])
    canvas.matrix(large.mean, left, top, right - left, bottom - top, peak)
    if line >= 0.25:
        _numbers(canvas, large.mean, left, top, (cell, line), peak, least=0.1)
    _row_labels(canvas, rows, left, top, line, size)
    _column_labels(canvas, columns, left, top, cell, size, angle)
    canvas.scale(left, bottom + 0.1, peak)
    if chances:
        canvas.bars(chances, right + 0.2, top, line)
        canvas.write(right + 0.2, bottom + 0.16, "probability", va="center_baseline")
    gallery.draw(canvas, MARGIN, bottom + 0.4)
    canvas.save(path)


def plot_image(
    view: ImageView,
    pixels: "Tensor | np.ndarray",
    path: str | os.PathLike[str],
    *,
    title: str = "",
    layer: int | None = None,
) -> None:
    """Draw a picture under its patch grid, its attention, its classes, and every layer and head.

    Args:
        view: what to draw.
        pixels: the picture, (height, width) or (height, width, channel), 0..255.
        path: of the PNG.
        title: the headline, such as the name of the picture.
        layer: whose attention lies over the picture, from 1; by default the last.

    Raises:
        UsageError: the view has no such map, or the pixels are no picture.
        MissingExtraError: matplotlib, or a font for these texts, is not installed.
    """
    maps = _of_kind(view.maps, "encoder self")
    large = maps[-1] if layer is None else _of_layer(maps, layer)
    names = [label(found.label) for found in view.classes]
    legend = _image_legend(view, large)
    title = cut(" ".join(title.split()), HEADLINE)
    image = _checked(pixels)
    fonts = Fonts([title, legend, *names])

    across = min(3.2 * view.width / view.height, 4.8)
    down = across * view.height / view.width
    second = MARGIN + across + 0.25
    third = second + across + 0.35
    bars = third + fonts.width(names, 11.0) + 0.14
    headline = max(fonts.width([title], TITLE), fonts.width([legend], SMALL))
    width = max(bars + BARS, MARGIN + headline) + MARGIN
    top = MARGIN + (0.4 if title else 0.0) + 0.4
    bottom = top + down
    gallery = Gallery(
        fonts,
        [found.layer for found in maps],
        [[view.over_patches(each) for each in _thumbnails(found)] for found in maps],
        large.layer,
        width - 2 * MARGIN,
        (view.boxes[-1][2] - view.boxes[0][0], view.boxes[-1][3] - view.boxes[0][1]),
        limit=1.1,
    )
    height = bottom + 0.4 + gallery.height + MARGIN

    canvas = Canvas(width, height, fonts)
    _head(canvas, title, legend)
    weights = view.over_patches(large.mean)
    peak = peak_of([weights])
    _patches(canvas.picture(image, MARGIN, top, across, down), view)
    _attention(canvas.picture(_pencil(image), second, top, across, down), view, weights, peak)
    box = view.boxes[0]
    patch = across * (box[2] - box[0]) / view.width, down * (box[3] - box[1]) / view.height
    if min(patch) >= 0.4:
        first = second + across * box[0] / view.width, top + down * box[1] / view.height
        _numbers(canvas, weights, *first, patch, peak)
    step = min(0.4, down / max(len(names), 1))
    _row_labels(canvas, names, bars, top, step, 11.0)
    canvas.bars([found.probability for found in view.classes], bars, top, step)
    note = f"{view.grid_rows} x {view.grid_columns} patches"
    canvas.write(MARGIN, bottom + 0.16, note, va="center_baseline")
    canvas.scale(second, bottom + 0.1, peak)
    gallery.draw(canvas, MARGIN, bottom + 0.4)
    canvas.save(path)


def _thumbnails(found: MapView) -> list[Matrix]:
    """The mean over heads, then the heads; of a single head, that one."""
    return [found.mean, *(found.weights if len(found.weights) > 1 else [])]


def _checked(pixels: "Tensor | np.ndarray") -> Tensor:
    image = pixels.cpu() if isinstance(pixels, Tensor) else torch.tensor(pixels)
    if image.ndim == 3 and image.shape[-1] == 1:
        return image[..., 0]
    if image.dtype != torch.uint8 or not (image.ndim == 2 or image.shape[2:] == (3,)):
        raise UsageError(
            f"The picture is {image.dtype} of shape {tuple(image.shape)}: give whole numbers "
            "0..255 (uint8) of shape (height, width) or (height, width, 1 or 3)."
        )
    return image


def _pencil(image: Tensor) -> Tensor:
    """Make a picture a film of transparent black, so that colours below show through it."""
    grey = image.float() if image.ndim == 2 else image.float().mean(dim=-1)
    film = torch.zeros(*grey.shape, 4, dtype=torch.uint8)
    film[..., 3] = (0.28 * (255 - grey)).round()
    return film


def _patches(axes: "Axes", view: ImageView) -> None:
    """Draw the outlines of the patches, to be seen on dark and on light."""
    for colour, line in (("#00000060", 1.6), ("#ffffffb0", 0.7)):
        _boxes(axes, view, facecolors="none", edgecolors=colour, linewidths=line)


def _attention(axes: "Axes", view: ImageView, weights: Matrix, peak: float) -> None:
    """Draw the weight of each patch below the picture."""
    colours = [shade(weight / peak) for row in weights for weight in row]
    _boxes(axes, view, facecolors=colours, linewidths=0, antialiaseds=False, zorder=-1)


def _boxes(axes: "Axes", view: ImageView, **look: Any) -> None:
    from matplotlib.collections import PolyCollection

    scaled = (
        (left / view.width, top / view.height, right / view.width, bottom / view.height)
        for left, top, right, bottom in view.boxes
    )
    corners = [[(a, b), (c, b), (c, d), (a, d)] for a, b, c, d in scaled]
    axes.add_collection(PolyCollection(corners, **look), autolim=False)


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


def _head(canvas: Canvas, title: str, legend: str) -> None:
    if title:
        canvas.write(MARGIN, MARGIN, title, TITLE, INK, va="top")
    canvas.write(MARGIN, MARGIN + (0.4 if title else 0.0), legend, va="top")


def _row_labels(
    canvas: Canvas, names: Sequence[str], left: float, top: float, step: float, size: float
) -> None:
    """Write names that end just left of `left`, one below the other."""
    for index, text in enumerate(names):
        middle = top + (index + 0.5) * step
        canvas.write(left - 0.1, middle, text, size, INK, ha="right", va="center_baseline")


def _column_labels(
    canvas: Canvas,
    names: Sequence[str],
    left: float,
    top: float,
    step: float,
    size: float,
    angle: int,
) -> None:
    """Write names that stand on `top`, one beside the other."""
    for index, text in enumerate(names):
        middle = left + (index + 0.5) * step
        if angle == 45:  # begins above the middle of its column
            x, y, side, foot, mode = middle - 0.05, top - 0.1, "left", "center", "anchor"
        else:
            x, y, side, foot, mode = middle, top - 0.08, "center", "bottom", "default"
        canvas.write(x, y, text, size, INK, rotation=angle, rotation_mode=mode, ha=side, va=foot)


def _numbers(
    canvas: Canvas,
    weights: Matrix,
    left: float,
    top: float,
    cell: tuple[float, float],
    peak: float,
    least: float = 0.0,
) -> None:
    """Write the weights that are not too small to matter into their cells."""
    for down, row in enumerate(weights):
        for across, weight in enumerate(row):
            if weight >= least:
                x, y = left + (across + 0.5) * cell[0], top + (down + 0.5) * cell[1]
                ink = "white" if weight > 0.5 * peak else INK
                number = f"{weight:.2f}"
                canvas.write(x, y, number, 7.5, ink, ha="center", va="center_baseline")


def _image_legend(view: ImageView, found: MapView) -> str:
    heads = len(found.weights)
    place = f"encoder layer {found.layer}" + (f", mean of {heads} heads" if heads > 1 else "")
    if view.class_token:
        rest = found.mean[0][0]
        return f"{place}, attention from the class token to each patch, {rest:.2f} of it to itself"
    return f"{place}, attention that each patch receives, mean over all patches; sums to 1"
