"""One picture: opened whole or refused by name, and its numbers as 8 bits by one rule.

What a file is follows from its content, not from its ending. Of 16 bits the upper 8 count, also
where a file keeps them in 32; fractions from 0 to 1 are multiplied by 255; black and white are 0
and 255; a palette stands for its colours. Nothing depends on what else a picture shows.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from manyheads.errors import NotFoundError, UnreadableError

SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".npy"}
NPY = b"\x93NUMPY"  # how a file of numpy begins
ANIMATED = "animated"  # in the info of the first frame of several
# Modes that `np.asarray` shows otherwise than they look, and the mode that shows them.
PLAIN = {"1": "L", "P": "RGB", "PA": "RGBA"}

# What a file holds: a picture, or an array (height, width, channel) of any number of channels.
Picture = Image.Image | np.ndarray


NO_COLOURS = "it is an array of numbers, not colours"
# What Pillow and numpy raise about files that are damaged or something else.
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
    """Say of a picture that cannot be read which one it is, and why.

    Raises:
        UnreadableError: in place of what Pillow and numpy raise.
    """
    try:
        yield
    except UNREADABLE as error:
        reason = str(error).rstrip(".") or type(error).__name__
        if "cannot identify" in reason:
            reason = "not a picture, or a damaged one"
        if isinstance(error, Image.DecompressionBombError):
            limit = 2 * (Image.MAX_IMAGE_PIXELS or 0)
            reason = f"it has more than {limit:,} pixels (a decompression bomb?); make it smaller"
        raise UnreadableError(str(name), reason) from error


def open_content(content: bytes) -> Picture:
    """Open a picture, or an array of numpy, from the content of its file.

    Raises:
        ValueError: there is nothing in it.
    """
    if not content:
        raise ValueError("it is empty (0 bytes)")
    if content.startswith(NPY):
        array: np.ndarray = np.load(BytesIO(content), allow_pickle=False)
        return array
    return Image.open(BytesIO(content))


def open_cell(cell: object, folder: Path) -> Picture:
    """Open what a cell of a table holds: a picture, or the path of one relative to the folder.

    Hugging Face writes both, and leaves one of them empty.

    Raises:
        ValueError: it is neither, or nothing.
    """
    if isinstance(cell, Mapping):
        cell = cell.get("bytes") or cell.get("path")
    if isinstance(cell, str) and cell:
        return open_content((folder / Path(cell).expanduser()).read_bytes())
    if cell is None or isinstance(cell, bytes):
        return open_content(cell or b"")
    raise ValueError(f"the cell holds {cell!r:.50}, neither a picture nor a path")


def open_picture(path: Path) -> Picture:
    """Open a file of pixels; what it is follows from its content, not from its ending.

    Raises:
        NotFoundError: no such file.
        UnreadableError: it is not a picture, or a damaged one.
    """
    with naming(path):
        if not path.exists():
            raise NotFoundError(f"There is no file {path}.")
        return load(lambda: open_content(path.read_bytes()))


def open_image(path: Path) -> Image.Image:
    """Open a picture file.

    Raises:
        NotFoundError: no such file.
        UnreadableError: it is not a picture, or a damaged one.
    """
    picture = open_picture(path)
    if isinstance(picture, np.ndarray):
        raise UnreadableError(str(path), NO_COLOURS)
    return picture


def load(read: Callable[[], Picture]) -> Picture:
    """Decode all of a picture, or raise: nothing is left to be read later."""
    with warnings.catch_warnings():
        # Up to twice Pillow's limit a picture is only large; beyond, it raises.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        picture = read()
        if isinstance(picture, np.ndarray):
            return eight_bit_array(picture)
        with picture:
            picture.load()
            if getattr(picture, "is_animated", False):
                picture = picture.copy()  # its first frame; the file of the others is closed now
                picture.info[ANIMATED] = True
    return picture


def eight_bits(picture: Image.Image) -> Image.Image:
    """Scale deep greys as arrays are scaled; Pillow's convert would cut off what is brighter."""
    if picture.mode not in ("I", "F") and not picture.mode.startswith("I;16"):
        return picture
    values = np.asarray(picture)
    if picture.mode == "I" and 0 <= values.min(initial=0) <= values.max(initial=0) < 1 << 16:
        values = values.astype(np.uint16)  # 32 bits are where some files keep 16
    return Image.fromarray(eight_bit_array(values)[:, :, 0])


def eight_bit_array(array: np.ndarray) -> np.ndarray:
    """Bring an array to (height, width, channel) of bytes, by its type and never by its content.

    Of 16 bits the upper 8 count; fractions from 0 to 1 are multiplied by 255.
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
