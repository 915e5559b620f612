"""Read one image completely, or raise an error with its name; convert its values to 8 bits.

The file type is detected from the content, not from the ending. Of 16-bit values the upper 8 bits
are used, also if the file stores them in 32 bits; fractions from 0 to 1 are multiplied by 255;
black and white are 0 and 255; palette indices become colours. No rule depends on other pixels.
"""

import os
import re
import struct
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from PIL import Image, UnidentifiedImageError

from manyheads.data.regular_files import require_regular
from manyheads.errors import ManyheadsError, NotFoundError, UnreadableError
from manyheads.files import expand_user
from manyheads.registration import checked_ending, register

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


# What Pillow may open: its other formats are rarely photos, and some start other programs.
PILLOW = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF")
# By ending; of those that Pillow reads there is no more to say.
FORMATS: dict[str, ImageFormat | None] = {
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")),
    **dict.fromkeys((".avif", ".pbm", ".pgm", ".ppm", ".pnm")),
    ".npy": ImageFormat(b"\x93NUMPY", _read_npy),
}
SUFFIXES = FORMATS.keys()  # a view: it has what is added later, too
# Photos in formats that are not read; in a folder of images they are not passed over.
FOREIGN = {".heic": "HEIC", ".heif": "HEIC", ".hif": "HEIC", ".jp2": "JPEG 2000", ".jxl": "JPEG XL"}
_FOREIGN_BEGIN = {
    "HEIC": rb"....ftyp(?:he[iv][cmsx]|mif1|msf1)",
    "JPEG 2000": rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51",
    "JPEG XL": rb"\0\0\0\x0cJXL |\xff\x0a",
}
# How files of all these formats begin.
_IMAGE_BEGIN = re.compile(
    rb"\x89PNG|\xff\xd8\xff|RIFF....WEBP|GIF8|BM....\0\0\0\0|II\*\0|MM\0\*|P[1-7]\s|....ftypavi[fs]|"
    + b"|".join(_FOREIGN_BEGIN.values()),
    re.DOTALL,
)
BEGIN = 16  # bytes that it looks at
LARGEST = 1 << 31  # bytes of the file of one image
_INFLATED = 1 << 16  # bytes of a PNG's data that are looked at at a time
# Pixels of a frame of an animation: decoders hold several, and their size is only declared.
MOST_ANIMATED = 1 << 25


def register_image_format(ending: str, format: ImageFormat | None = None) -> None:
    """Add a format of images in files with this ending, such as ".ff"; None: it is read already.

    Raises:
        UsageError: the ending is not one, or is known; the object is no `ImageFormat`.
    """
    wanted = "Give an ImageFormat, or None for another ending of one that is read."
    lacks = ["being an ImageFormat"] * (not isinstance(format, ImageFormat | None))
    register(FORMATS, "an image format", checked_ending(ending), format, wanted, lacks)


# Errors of Pillow and numpy for files that are damaged or not images.
UNREADABLE = (OSError, ValueError, SyntaxError, EOFError, MemoryError, Image.DecompressionBombError)


@contextmanager
def naming(name: str | Path) -> Iterator[None]:
    """Convert errors of Pillow and numpy to an error with the name of the image.

    Raises:
        UnreadableError: the image cannot be read.
    """
    try:
        yield
    except UNREADABLE as error:
        reason = str(getattr(error, "strerror", None) or error).rstrip(".") or type(error).__name__
        if isinstance(error, Image.DecompressionBombError):
            limit = Image.MAX_IMAGE_PIXELS or 0
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
    try:
        image = Image.open(BytesIO(content), formats=PILLOW)
    except UnidentifiedImageError:
        for name, begin in _FOREIGN_BEGIN.items():
            if re.match(begin, content, re.DOTALL):
                raise ValueError(f"it is {name}, which is not read: convert it to JPEG") from None
        raise ValueError("not an image, or damaged") from None
    _check_pixels(image, content)
    return image


def _check_pixels(image: Image.Image, content: bytes) -> None:
    """Refuse what would take gigabytes: Pillow only warns between its limit and twice that."""
    kind, most = "it", Image.MAX_IMAGE_PIXELS or MOST_ANIMATED
    webp = content[:4] == b"RIFF" and content[12:16] == b"VP8X"
    if getattr(image, "is_animated", False) or (webp and content[20] & 2):  # its animation flag
        kind, most = "a frame of this animation", MOST_ANIMATED
    if image.width * image.height > most:
        raise ValueError(
            f"{kind} has {image.width:,} x {image.height:,}, more than {most:,} pixels "
            "(a decompression bomb?); make it smaller"
        )


def read_content(path: Path) -> bytes:
    """Read the file of an image.

    Raises:
        OSError: it is not there, not a regular file, or too large.
    """
    with require_regular(path).open("rb") as file:
        if (size := os.fstat(file.fileno()).st_size) > LARGEST:
            raise OSError(f"it has {size:,} bytes, and at most {LARGEST:,} are read")
        return file.read()


def begins_like_image(head: bytes) -> bool:
    """Tell from the first BEGIN bytes whether a file is an image, or a photo that is not read."""
    others = (known.begins for known in FORMATS.values() if known is not None)
    return _IMAGE_BEGIN.match(head) is not None or head.startswith(tuple(others))


def is_image(path: Path) -> bool:
    """Tell whether a file belongs to a set of images: by its ending; without one, by its content.

    Formats that are not read belong to it as well: reading them tells so.
    """
    if path.suffix:
        return path.suffix.lower() in (*SUFFIXES, *FOREIGN)
    try:
        with require_regular(path).open("rb") as file:
            return begins_like_image(file.read(BEGIN))
    except OSError:
        return False


def content_of(cell: object) -> object:
    """Return what a cell of images holds; of Hugging Face's two fields the one that is filled."""
    return (cell.get("bytes") or cell.get("path")) if isinstance(cell, Mapping) else cell


def read_cell(cell: object, folder: Path) -> bytes:
    """Read the image in a table cell: its bytes, or its path relative to the folder.

    Raises:
        ValueError: the cell holds neither.
    """
    cell = content_of(cell)
    if isinstance(cell, str) and cell:
        return read_content(folder / expand_user(cell))
    if cell is None or isinstance(cell, bytes):
        return cell or b""
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
        return load(lambda: read_content(path))


def load(read: Callable[[], bytes | ImageContent]) -> ImageContent:
    """Decode an image, or the bytes of its file, completely; nothing is read lazily.

    Raises:
        ValueError: it cannot be decoded.
    """
    try:
        with warnings.catch_warnings():
            # Pillow warns above its pixel limit and raises above twice the limit.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = read()
            if isinstance(image, bytes):
                image = open_content(image)
            if isinstance(image, np.ndarray):
                return eight_bit_array(image)
            with image:
                if image.format == "PNG":
                    _check_rows(image.fp)  # type: ignore[attr-defined] # of an image file
                image.load()
                if getattr(image, "is_animated", False):
                    image = image.copy()  # the first frame; closes the file
                    image.info[ANIMATED] = True
            return image
    except (*UNREADABLE, ManyheadsError):
        raise
    except Exception as error:  # decoders raise anything for damaged files
        raise ValueError(str(error) or type(error).__name__) from error


_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of a pixel, by the colour type of a PNG
# The passes of an interlaced PNG: first column and row, and the steps between them.
_PASSES = (
    *((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4)),
    *((0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)),
)


def _check_rows(file: IO[bytes]) -> None:
    """Refuse a PNG that ends before its last row, or without an end: Pillow takes it as it is.

    Raises:
        ValueError: it is cut off.
        OSError: its data are damaged.
    """
    place = file.tell()
    file.seek(16)
    width, height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", file.read(13))
    missing = 0
    for left, top, across, down in _PASSES if interlaced else ((0, 0, 1, 1),):
        columns, rows = -(-(width - left) // across), -(-(height - top) // down)
        if columns > 0 < rows:
            missing += rows * (1 + -(-columns * depth * _SAMPLES.get(colours, 1) // 8))
    file.seek(8)
    inflate = zlib.decompressobj()
    name = b""
    while name != b"IEND" and len(begin := file.read(8)) == 8:
        length, name = struct.unpack(">I4s", begin)
        if name != b"IDAT":
            file.seek(length + 4, os.SEEK_CUR)
            continue
        data = file.read(length)
        while data and missing > 0:
            try:
                missing -= len(inflate.decompress(data, _INFLATED))
            except zlib.error as error:
                raise OSError(f"its data are damaged: {error}") from None
            data = inflate.unconsumed_tail
        file.seek(4, os.SEEK_CUR)
    if missing - len(inflate.flush()) > 0 or name != b"IEND":
        raise ValueError("it is cut off: its end is missing")
    file.seek(place)


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
