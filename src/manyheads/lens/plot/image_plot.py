"""Attention plots of an image as PNG files."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.lens.colours import shade, signed_shade
from manyheads.lens.labels import label
from manyheads.lens.plot.canvas import Canvas
from manyheads.lens.plot.fonts import Fonts
from manyheads.lens.plot.gallery import Gallery
from manyheads.lens.plot.sheet import BARS, MARGIN, Sheet, thumbnails
from manyheads.lens.thumbnail import thumbnail
from manyheads.lens.trace.grids import Box, GridView
from manyheads.lens.view.image_view import POOL, ImageView
from manyheads.lens.view.text_view import MapView, Matrix
from manyheads.nn.recording.token_grid import summary_tokens

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes

# All lengths are inches.
GAP = 0.25  # between panels
KEY = 0.4  # below a panel
BESIDE = 4  # panels


def plot_image(
    view: ImageView,
    pixels: "Tensor | np.ndarray",
    path: str | os.PathLike[str],
    *,
    title: str = "",
    layer: int | None = None,
) -> None:
    """Draw an image with its tokens, attention, overlays, classes, and every layer and head.

    Args:
        view: the view.
        pixels: the image, (height, width) or (height, width, channel), 0..255.
        path: of the PNG.
        title: the headline, such as the name of the image.
        layer: the layer whose attention is drawn over the image, from 1, counted through all
            stages; by default the pool's, or else the last.

    Raises:
        UsageError: the view has no such map, or the pixels are not an image.
        MissingExtraError: matplotlib, or a font for these texts, is not installed.
    """
    large = _enlarged(view.maps, layer)
    names = [label(each.label) + " (explained)" * each.explained for each in view.classes]
    legend = "" if large is None else _image_legend(view, large)
    image = _checked(pixels)
    remarks = [each.legend for each in view.overlays] + view.notes
    remarks = [f"{each[0].upper()}{each[1:]}" for each in remarks]
    fonts = Fonts([title, legend, *names, *remarks])

    # Drawn over the image: the attention, and all overlays.
    laid = [
        _Laid(view.grids[each.grid], view.on_grid(each.grid, each.weights), each.name, each.signed)
        for each in view.overlays
    ]
    if large is not None:
        laid.insert(0, _Laid(_columns(view, large), view.received(large, large.mean)))

    across = min(3.2 * view.width / view.height, 4.8)
    down = across * view.height / view.width
    lines = -(-(1 + len(laid)) // BESIDE)
    beside = -(-(1 + len(laid)) // lines)
    classes = MARGIN + beside * (across + GAP) + 0.1
    bars = classes + fonts.width(names, 11.0) + 0.14
    sheet = Sheet(fonts, title, legend, remarks, bars + BARS)
    top = sheet.below_title + (0.4 if legend else 0.0)
    below = lines * (down + KEY)  # rows of images, with their keys
    gallery = None
    if large is not None:
        layers, framed = [_place(found) for found in view.maps], view.maps.index(large)
        matrices = [[view.received(one, each) for each in thumbnails(one)] for one in view.maps]
        shape = _extent(_columns(view, large))
        out = [found.taken_out or [] for found in view.maps]
        gallery = Gallery(fonts, layers, matrices, framed, sheet.inner, shape, out, limit=1.1)
    canvas = sheet.canvas(top + below + (0.0 if gallery is None else gallery.height))
    bare = canvas.draw_image(image, MARGIN, top, across, down)
    if large is not None:
        _outline(bare, view, _columns(view, large).boxes)
        if large.windows is not None:
            _outline(bare, view, [b for window in large.windows for g in window for b in g], 1.6)
        canvas.write(MARGIN, top + down + 0.16, _counted(view, large), va="center_baseline")
    for number, each in enumerate(laid, 1):
        left = MARGIN + number % beside * (across + GAP)
        high = top + number // beside * (down + KEY)
        _lay(canvas, view, image, each, (left, high, across, down))
    step = min(0.4, down / max(len(names), 1))
    canvas.row_labels(names, bars, top, step, 11.0)
    canvas.bars([found.probability for found in view.classes], bars, top, step)
    if gallery is not None:
        gallery.draw(canvas, MARGIN, top + below)
    canvas.save(path)


class _Laid(NamedTuple):
    """Numbers to draw over the image."""

    grid: GridView
    weights: Matrix
    name: str = ""
    signed: bool = False


def _enlarged(maps: Sequence[MapView], layer: int | None) -> MapView | None:
    if layer is None:
        return maps[-1] if maps else None
    if not 1 <= layer <= len(maps):
        sites = ", ".join(f"{n} ({found.site})" for n, found in enumerate(maps, 1))
        raise UsageError(f"There is no layer {layer}. Layers of this image: {sites}.")
    return maps[layer - 1]


def _columns(view: ImageView, layer: MapView) -> GridView:
    assert layer.column_grid is not None
    return view.grids[layer.column_grid]


def _image_legend(view: ImageView, layer: MapView) -> str:
    stack = layer.site.partition(" layer ")[0]
    heads = len(layer.weights)
    place = layer.site.removesuffix(" self") + (f", mean of {heads} heads" if heads > 1 else "")
    extra = _columns(view, layer).extra
    readers = view.readers(layer)
    if stack == POOL:
        return f"{place}, attention from the pool's learned query to each patch; sums to 1"
    asking = [] if layer.row_grid is None else view.grids[layer.row_grid].extra
    if summary_tokens(asking):
        whose = " and the ".join(asking[row] for row in readers)
        aside = sum(sum(layer.mean[row][: len(extra)]) for row in readers) / len(readers)
        own = "to itself" if len(readers) == 1 else "among themselves"
        if len(asking) > len(readers):
            own += " and to registers"
        return f"{place}, attention from the {whose} to each patch, {aside:.2f} of it {own}"
    total = sum(sum(row) for row in view.received(layer, layer.mean))
    rest = "registers" if asking else "padding"
    sums = "sums to 1" if abs(total - 1) < 0.01 else f"{total:.2f} in all, the rest to {rest}"
    return f"{place}, attention that each patch receives, mean over all patches; {sums}"


def _counted(view: ImageView, layer: MapView) -> str:
    grid = _columns(view, layer)
    what = "patches" if layer.row_grid in (None, layer.column_grid) else "keys"
    if grid.merged > 1:
        what = f"groups of {grid.merged} x {grid.merged} {what}"
    if layer.windows is not None:
        count = len(layer.windows)
        what += f", {count} window" + ("s" if count > 1 else "")
    return f"{grid.rows} x {grid.columns} {what}"


def _lay(canvas: Canvas, view: ImageView, image: Tensor, laid: _Laid, box: Sequence[float]) -> None:
    """Draw numbers as shades below the image, with their colour scale, into a box in inches."""
    left, top, across, down = box
    boxes, weights = laid.grid.boxes, [weight for row in laid.weights for weight in row]
    peak = max(map(abs, weights), default=0.0) or 1.0
    axes = canvas.draw_image(_pencil(image), left, top, across, down)
    colour = signed_shade if laid.signed else shade
    colours = [colour(weight / peak) for weight in weights]
    _boxes(axes, view, boxes, facecolors=colours, linewidths=0, antialiaseds=False, zorder=-1)
    scale = across / view.width, down / view.height
    if min(min(box[2] * scale[1], box[3] * scale[0]) for box in boxes) >= 0.4:
        for box, weight in zip(boxes, weights, strict=True):
            x = left + (box[1] + box[3] / 2) * scale[0]
            y = top + (box[0] + box[2] / 2) * scale[1]
            canvas.number(x, y, weight, peak)
    canvas.scale(left, top + down + 0.1, peak, signed=laid.signed)
    canvas.write(left + across, top + down + 0.16, laid.name, ha="right", va="center_baseline")


def _place(layer: MapView) -> str:
    stack = layer.site.partition(" layer ")[0]
    if stack == POOL:
        return "pool"
    return f"layer {layer.layer}" if stack == "encoder" else f"{stack} layer {layer.layer}"


def _extent(grid: GridView) -> tuple[float, float]:
    """Return width and height of the crop that the model reads."""
    top, left = grid.boxes[0][:2]
    row, column, high, wide = grid.boxes[-1]
    return column + wide - left, row + high - top


def _checked(pixels: "Tensor | np.ndarray") -> Tensor:
    image = pixels.cpu() if isinstance(pixels, Tensor) else torch.tensor(pixels)
    if image.ndim == 3 and image.shape[-1] == 1:
        image = image[..., 0]
    if image.dtype != torch.uint8 or not (image.ndim == 2 or image.shape[2:] == (3,)):
        raise UsageError(
            f"The image is {image.dtype} of shape {tuple(image.shape)}: give whole numbers "
            "0..255 (uint8) of shape (height, width) or (height, width, 1 or 3)."
        )
    return thumbnail(image)


def _pencil(image: Tensor) -> Tensor:
    """Convert an image to transparent black, so that colours below are visible."""
    grey = image.float() if image.ndim == 2 else image.float().mean(dim=-1)
    film = torch.zeros(*grey.shape, 4, dtype=torch.uint8)
    film[..., 3] = (0.28 * (255 - grey)).round()
    return film


def _outline(axes: "Axes", view: ImageView, boxes: Sequence[Box], width: float = 0.7) -> None:
    """Draw outlines of boxes that are visible on dark and light images."""
    for colour, line in (("#00000060", 2.3 * width), ("#ffffffb0", width)):
        _boxes(axes, view, boxes, facecolors="none", edgecolors=colour, linewidths=line)


def _boxes(axes: "Axes", view: ImageView, boxes: Sequence[Box], **look: Any) -> None:
    from matplotlib.collections import PolyCollection

    corners = []
    for row, column, high, wide in boxes:
        top, bottom = row / view.height, (row + high) / view.height
        left, right = column / view.width, (column + wide) / view.width
        corners.append([(left, top), (right, top), (right, bottom), (left, bottom)])
    axes.add_collection(PolyCollection(corners, **look), autolim=False)
