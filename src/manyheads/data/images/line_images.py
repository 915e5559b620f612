"""Printed lines as the images that a reader sees: grey, of one height, dark on light, padded.

Training and prediction prepare lines by this code. A width is rounded up to whole steps and a batch
holds one width only, so what is read in an image never depends on the others of its batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from annotated_types import Ge, Le, MultipleOf
from PIL import Image
from torch import Tensor

from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_file import ImageContent, naming
from manyheads.data.images.image_set import Preprocessing, in_threads
from manyheads.errors import DataError, UnreadableError

PAPER = 255
LARGEST = 1 << 19  # pixels of the width of a line
STEP = 32  # widths are multiples of it
GREY = Preprocessing(mode="L")


@dataclass(frozen=True, kw_only=True)
class LineImage:
    """The [image] table of a line reader."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    height: Annotated[int, Ge(8), Le(256), MultipleOf(8)] = 32
    # Pixels of a line at this height; wider ones are left out of training, and cut to be read.
    max_width: Annotated[int, Ge(32), Le(1 << 14)] = 1024


def line_pixels(image: ImageContent, size: LineImage) -> np.ndarray:
    """Prepare an image of one line: grey, of the model's height, dark on light, full contrast.

    Raises:
        ValueError: an array whose values are not colours.
    """
    return spread_contrast(to_height(grey(image), size.height))


def grey(image: ImageContent) -> np.ndarray:
    """Convert an image to grey, upright and with transparency on white: (height, width), 0..255.

    Raises:
        ValueError: an array whose values are not colours.
    """
    if isinstance(image, np.ndarray):
        return Preprocessing(mode="L", height=image.shape[0], width=image.shape[1]).pixels(image)[0]
    return np.asarray(GREY.upright(image), dtype=np.uint8)


def to_height(pixels: np.ndarray, height: int) -> np.ndarray:
    """Resize (height, width) to this height; the aspect ratio stays.

    Raises:
        ValueError: the line would be too wide.
    """
    rows, columns = pixels.shape
    if rows == height:
        return pixels
    width = max(1, round(columns * height / rows))
    if width > LARGEST:
        raise ValueError(
            f"it is {columns:,} pixels wide and {rows:,} high, more than {LARGEST // height:,} "
            "times as wide as high: that is no line of text"
        )
    resized = Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(resized, dtype=np.uint8)


def spread_contrast(pixels: np.ndarray) -> np.ndarray:
    """Make the paper white and the ink black: what most pixels have is the paper.

    The darkest and the lightest hundredth of the values become 0 and 255; a line in light ink on
    dark paper is inverted. Values that differ by less than 8 are left as paper.
    """
    some = pixels[::2, ::2]
    ranked = np.sort(some, axis=None)
    low, middle, high = (int(ranked[int(share * (ranked.size - 1))]) for share in (0.01, 0.5, 0.99))
    if high - low < 8:
        return np.full_like(pixels, PAPER)
    table = (np.arange(256, dtype=np.float32) - low) * (255 / (high - low))
    if middle - low < high - middle:
        table = 255 - table
    lookup: np.ndarray = np.clip(np.rint(table), 0, 255).astype(np.uint8)
    return lookup[pixels]


def padded_width(width: int) -> int:
    """Round a width up to a whole number of steps."""
    return -(-max(width, 1) // STEP) * STEP


def stack(lines: Sequence[np.ndarray], width: int | None = None) -> Tensor:
    """Pad lines of one height with paper on the right, and stack them.

    Returns:
        (line, 1, height, width) in 0..1: ink is 1, paper 0. The width is that of the widest,
        rounded up, if None.
    """
    height = lines[0].shape[0]
    width = max(padded_width(line.shape[1]) for line in lines) if width is None else width
    table = np.full((len(lines), height, width), PAPER, dtype=np.uint8)
    for row, line in zip(table, lines, strict=True):
        row[:, : line.shape[1]] = line
    return 1 - torch.from_numpy(table)[:, None].float() / 255


IN_MEMORY = 2 << 30  # bytes of prepared lines; what is beyond is read from disk again


class LineImages:
    """Lines that were printed; every epoch has the same ones."""

    def __init__(self, captions: CaptionedImages, image: LineImage, *, skip: bool = False) -> None:
        """Open every image once, for its width; leave out those without a text or too wide.

        Args:
            captions: images with texts; of several texts of an image the first counts.
            image: the size of lines.
            skip: leave out images that cannot be read, too.

        Raises:
            DataError: no line is left.
            UnreadableError: an image cannot be read.
        """
        self.skip = skip
        self.image = image
        self.source = captions.images
        self.origin, self.hashes = captions.images.origin, captions.images.hashes
        first = np.searchsorted(captions.owners, np.arange(len(captions) + 1))
        with_text = [n for n in range(len(captions)) if first[n] < first[n + 1]]
        self._known: dict[int, np.ndarray] = {}
        kept: dict[int, int] = {}
        size = 0
        for index, pixels in zip(with_text, in_threads(self._try, with_text), strict=True):
            if pixels is None or pixels.shape[1] > image.max_width:
                continue
            kept[index] = pixels.shape[1]
            size += pixels.nbytes
            if size <= IN_MEMORY:
                self._known[index] = pixels
        self.missing: list[str] = []
        self.left_out = len(captions) - len(kept)
        if not kept:
            raise DataError(
                f"{self.origin}: none of {len(captions):,} images is a line with a text, at most "
                f"{image.max_width:,} pixels wide at a height of {image.height} (image.max_width)."
            )
        self._indices = list(kept)
        self._widths = np.array(list(kept.values()))
        self.texts = [" ".join(captions.texts[first[index]].split()) for index in kept]

    def __len__(self) -> int:
        return len(self.texts)

    def _try(self, index: int) -> np.ndarray | None:
        try:
            return self._read(index)
        except UnreadableError:
            if self.skip:
                return None
            raise

    def _read(self, index: int) -> np.ndarray:
        opened = self.source.open(index)
        with naming(self.source.names[index]):
            return line_pixels(opened, self.image)

    def widths(self, epoch: int) -> np.ndarray:
        """Return the width of each line."""
        return self._widths

    def pixels(self, index: int, epoch: int) -> np.ndarray:
        """Return a line: (height, width), 0..255, dark on light."""
        place = self._indices[index]
        captions = self._known.get(place)
        return self._read(place) if captions is None else captions

    def describe(self, index: int, epoch: int) -> str:
        """Name a line for messages."""
        return self.source.names[self._indices[index]]

    def group(self, index: int, epoch: int) -> str:
        """All lines are one group."""
        return ""
