"""Images of printed lines with their texts, as a reader learns from them."""

import numpy as np
import torch

from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_file import naming
from manyheads.data.images.image_set import in_threads
from manyheads.data.images.line_image import LineImage, line_pixels
from manyheads.errors import DataError, UnreadableError

IN_MEMORY = 2 << 30  # bytes of prepared lines; what is beyond is read from disk again


class LineImages:
    """Lines that were printed; every epoch has the same ones."""

    def __init__(self, found: CaptionedImages, image: LineImage, *, skip: bool = False) -> None:
        """Open every image once, for its width; leave out those without a text or too wide.

        Args:
            found: images with texts; of several texts of an image the first counts.
            image: the size of lines.
            skip: leave out images that cannot be read, too.

        Raises:
            DataError: no line is left.
            UnreadableError: an image cannot be read.
        """
        self.skip = skip
        self.image = image
        self.source = found.images
        self.origin, self.hashes = found.images.origin, found.images.hashes
        first = np.searchsorted(found.owners, np.arange(len(found) + 1))
        with_text = [n for n in range(len(found)) if first[n] < first[n + 1]]
        self._known: dict[int, np.ndarray] = {}
        kept: dict[int, int] = {}
        size = 0
        read = in_threads(self._try, with_text, torch.get_num_threads())
        for index, pixels in zip(with_text, read, strict=True):
            if pixels is None or pixels.shape[1] > image.max_width:
                continue
            kept[index] = pixels.shape[1]
            size += pixels.nbytes
            if size <= IN_MEMORY:
                self._known[index] = pixels
        self.missing: list[str] = []
        self.left_out = len(found) - len(kept)
        if not kept:
            raise DataError(
                f"{self.origin}: none of {len(found):,} images is a line with a text, at most "
                f"{image.max_width:,} pixels wide at a height of {image.height} (image.max_width)."
            )
        self._indices = list(kept)
        self._widths = np.array(list(kept.values()))
        self.texts = [" ".join(found.texts[first[index]].split()) for index in kept]

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
        found = self._known.get(place)
        return self._read(place) if found is None else found

    def describe(self, index: int, epoch: int) -> str:
        """Name a line for messages."""
        return self.source.names[self._indices[index]]

    def group(self, index: int, epoch: int) -> str:
        """All lines are one group."""
        return ""
