"""Read one image completely, or raise an error with its name; convert its values to 8 bits.

The file type is detected from the content, not from the ending. Of 16-bit values the upper 8 bits
are used, also if the file stores them in 32 bits; fractions from 0 to 1 are multiplied by 255;
black and white are 0 and 255; palette indices become colours. No rule depends on other pixels.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from manyheads.errors import NotFoundError, UnreadableError
from manyheads.files import expand_user

ANIMATED = "animated"  # key in the info of the first frame of an animation
# Modes whose `np.asarray` values are not colours, and the modes to convert them to.
PLAIN = {"1": "L", "P": "RGB", "PA": "RGBA"}

# The content of a file: an image, or an array (height, width, channel) with any channels.
ImageContent = Image.Image | np.ndarray


class ImageFormat(NamedTuple):
    """A format that Pillow does not know."""

    begins: bytes  # how its files begin
    read: Callable[[bytes], ImageContent]  # from the content of a file


def _read_npy(content: bytes) -> np.ndarray:
    array: np.ndarray = np.load(BytesIO(content), allow_pickle=False)
    return array


# By ending; of those that Pillow knows there is no more to say.
FORMATS: dict[str, ImageFormat | None] = {
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")),
    ".npy": ImageFormat(b"\x93NUMPY", _read_npy),
}
SUFFIXES = FORMATS.keys()  # a view: it has what is added later, too

NO_COLOURS = "it is an array of numbers, not colours"
# Errors of Pillow and numpy for files that are damaged or not images.
UNREADABLE = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    MemoryError,
    Image.DecompressionBombError,
)


@contextmanager
def naming(name: str | Path) -> Iterator[None]:
    """Convert errors of Pillow and numpy to an error with the name of the image.

    Raises:
        UnreadableError: the image cannot be read.
    """
    try:
        yield
    except UNREADABLE as error:
        reason = str(error).rstrip(".") or type(error).__name__
        if "cannot identify" in reason:
            reason = "not an image, or damaged"
        if isinstance(error, Image.DecompressionBombError):
            limit = 2 * (Image.MAX_IMAGE_PIXELS or 0)
            reason = f"it has more than {limit:,} pixels (a decompression bomb?); make it smaller"
        raise UnreadableError(str(name), reason) from error


def open_content(content: bytes) -> ImageContent:
    """Open an image, or a numpy array, from the bytes of its file.

    Raises:
        ValueError: the file is empty.
    """
    if not content:
        raise ValueError("it is empty (0 bytes)")
    for known in FORMATS.values():
        if known is not None and content.startswith(known.begins):
            return known.read(content)
    return Image.open(BytesIO(content))


def open_cell(cell: object, folder: Path) -> ImageContent:
    """Open the image in a table cell: its bytes, or its path relative to the folder.

    Hugging Face writes both fields and leaves one empty.

    Raises:
        ValueError: the cell holds neither.
    """
    if isinstance(cell, Mapping):
        cell = cell.get("bytes") or cell.get("path")
    if isinstance(cell, str) and cell:
        return open_content((folder / expand_user(cell)).read_bytes())
    if cell is None or isinstance(cell, bytes):
        return open_content(cell or b"")
    raise ValueError(f"the cell holds {cell!r:.50}, neither an image nor a path")


def open_image(path: Path) -> ImageContent:
    """Open an image file; its type is detected from the content, not from the ending.

    Raises:
        NotFoundError: no such file.
        UnreadableError: the file is not an image, or damaged.
    """
    with naming(path):
        if not path.exists():
            raise NotFoundError(f"There is no file {path}.")
        return load(lambda: open_content(path.read_bytes()))


def load(read: Callable[[], ImageContent]) -> ImageContent:
    """Decode an image completely; nothing is read lazily."""
    with warnings.catch_warnings():
        # Pillow warns above its pixel limit and raises above twice the limit.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        image = read()
        if isinstance(image, np.ndarray):
            return eight_bit_array(image)
        with image:
            image.load()
            if getattr(image, "is_animated", False):
                image = image.copy()  # the first frame; closes the file
                image.info[ANIMATED] = True
    return image


def eight_bits(image: Image.Image) -> Image.Image:
    """Scale grey values of more than 8 bits as arrays; Pillow's convert would clip them."""
    if image.mode not in ("I", "F") and not image.mode.startswith("I;16"):
        return image
    values = np.asarray(image)
    if image.mode == "I" and 0 <= values.min(initial=0) <= values.max(initial=0) < 1 << 16:
        values = values.astype(np.uint16)  # some files store 16 bits in 32
    return Image.fromarray(eight_bit_array(values)[:, :, 0])


def eight_bit_array(array: np.ndarray) -> np.ndarray:
    """Convert an array to (height, width, channel) bytes, by its data type only.

    Of 16-bit values the upper 8 bits are used; fractions from 0 to 1 are multiplied by 255.
    """
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or 0 in array.shape:
        raise ValueError(f"its shape is {array.shape}, not (height, width, channel)")
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind == "u" and array.dtype.itemsize == 2:
        return (array >> 8).astype(np.uint8)
    numbers = str(array.dtype)
    if array.dtype.kind in "iuf":
        low, high = array.min(), array.max()
        if array.dtype.kind == "f" and low >= 0 and high <= 1:
            return np.rint(array * 255).astype(np.uint8)
        numbers += f" from {low} to {high}"
    raise ValueError(
        f"its numbers are {numbers}: allowed are 8 and 16 bits without a sign, and fractions from "
        "0 to 1"
    )
