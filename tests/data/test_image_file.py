"""One image: what its numbers mean does not depend on what else it shows."""

import io
import os
import struct
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from manyheads.data.checks.image_fingerprints import perceptual
from manyheads.data.images.image_file import (
    LARGEST,
    eight_bit_array,
    load,
    naming,
    open_content,
    open_image,
)
from manyheads.data.images.image_set import Preprocessing
from manyheads.errors import DataError, UnreadableError

GREY = Preprocessing(height=1, width=2, mode="L")


def deep(kind: str, *values: float) -> Image.Image:
    return Image.fromarray(np.array([values], dtype=kind))


@pytest.mark.parametrize("other", [0, 200, 60_000])
def test_32_bits_hold_16(other: int) -> None:
    """300 of 65,535 is nearly black, whatever is beside it."""
    assert GREY.pixels(deep("int32", 300, other))[0, 0].tolist() == [300 >> 8, other >> 8]
    assert GREY.pixels(deep("uint16", 300, other))[0, 0].tolist() == [300 >> 8, other >> 8]
    assert eight_bit_array(np.array([[300]], dtype=">u2")).tolist() == [[[1]]]


@pytest.mark.parametrize("other", [0.0, 0.2, 1.0])
def test_fractions(other: float) -> None:
    """1 is white, whatever is beside it."""
    assert GREY.pixels(deep("float32", 0.2, other))[0, 0].tolist() == [51, round(255 * other)]


@pytest.mark.parametrize(
    "image",
    [
        deep("int32", 0, 65_536),
        deep("int32", -1, 3),
        deep("float32", 0, 1.5),
        deep("float32", -0.1, 1),
        deep("float32", float("nan"), 1),
    ],
)
def test_numbers_that_are_no_pixels(image: Image.Image) -> None:
    """Refused with their range: nobody knows what is white."""
    with pytest.raises(ValueError, match=r"its numbers are .* from .* to .*: allowed are"):
        GREY.pixels(image)


def test_black_and_white_and_palettes_as_bands() -> None:
    """0 and 255, and colours: not 0 and 1, and not the numbers of colours."""
    bits = Image.new("1", (2, 1))
    bits.putpixel((1, 0), 1)
    one = Preprocessing(height=1, width=2, mode="bands", num_channels=1)
    assert one.pixels(bits).tolist() == [[[0, 255]]]
    indexed = Image.new("P", (2, 1), 1)
    indexed.putpalette([0, 0, 0, 10, 20, 30])
    three = Preprocessing(height=1, width=2, mode="bands", num_channels=3)
    assert three.pixels(indexed)[:, 0, 0].tolist() == [10, 20, 30]


def test_a_deep_image_has_the_fingerprint_of_its_eight_bits() -> None:
    """And not that of a white area."""
    values = np.random.default_rng(0).integers(0, 256, (20, 30)).astype(np.uint8)
    deep = Image.fromarray(values.astype(np.uint16) << 8)
    assert (perceptual(deep) == perceptual(Image.fromarray(values))).all()
    assert perceptual(deep).any()


def test_an_array_that_claims_to_be_huge(tmp_path: Path) -> None:
    """A header of 128 bytes makes nobody wait for a terabyte."""
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000, 1000000, 1000), }"
    header = header.ljust(117) + b"\n"
    path = tmp_path / "huge.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    with pytest.raises(DataError, match=r"huge\.npy cannot be read as an image"):
        open_image(path)


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@pytest.mark.parametrize("format", ["png", "jpeg", "gif", "bmp", "tiff", "webp", "avif", "ppm"])
def test_damage_anywhere(format: str, tmp_path: Path) -> None:
    """Whatever bytes are changed, there is an image or an UnreadableError, and nothing else."""
    file = io.BytesIO()
    values = np.random.default_rng(0).integers(0, 256, (9, 11, 3)).astype(np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(values).save(file, format, exif=exif)
    whole = file.getvalue()
    random = np.random.default_rng(1)
    path = tmp_path / "image"
    lost = 0
    for _ in range(150):
        content = bytearray(whole)
        for place in random.integers(0, min(len(content), 300), 3):
            content[place] = random.integers(256)
        path.write_bytes(content)
        try:
            with naming(path):
                GREY.pixels(open_image(path))
        except UnreadableError:
            lost += 1
    assert lost > 0


@pytest.mark.parametrize("change", [0x01, 0xFF])
def test_an_avif_with_one_damaged_byte(change: int) -> None:
    """An image, or an UnreadableError: its decoder raises other errors than Pillow's own."""
    file = io.BytesIO()
    values = np.random.default_rng(0).integers(0, 256, (9, 11, 3)).astype(np.uint8)
    Image.fromarray(values).save(file, "avif")
    whole, lost = file.getvalue(), 0
    for place in range(0, len(whole), 3):
        content = bytearray(whole)
        content[place] ^= change
        try:
            with naming("a.avif"):
                load(partial(open_content, bytes(content)))
        except UnreadableError:
            lost += 1
    assert lost > 10


POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n"
HEIC = b"\0\0\0\x18ftypheic" + bytes(100)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (POSTSCRIPT, "not an image"),  # Pillow would start Ghostscript
        (HEIC, "it is HEIC, which is not read: convert it to JPEG"),
        (b"\0\0\0\x0cJXL \r\n\x87\n" + bytes(100), "it is JPEG XL"),
    ],
)
def test_only_formats_of_images_are_opened(tmp_path: Path, content: bytes, words: str) -> None:
    """Whatever a file is called: those of the list, and none that starts another program."""
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(UnreadableError, match=f"a.png cannot be read as an image: {words}"):
        open_image(tmp_path / "a.png")


@pytest.mark.parametrize("ending", ["avif", "ppm", "pgm", "tif", "webp"])
def test_formats_of_the_list(tmp_path: Path, ending: str) -> None:
    """All of them are read."""
    Image.new("L" if ending == "pgm" else "RGB", (3, 2), 255).save(tmp_path / f"a.{ending}")
    assert GREY.pixels(open_image(tmp_path / f"a.{ending}")).shape == (1, 1, 2)


def test_an_image_bomb_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    """A header of 60,000 x 60,000 pixels with nothing behind it."""
    (tmp_path / "a.pgm").write_bytes(b"P5 60000 60000 255\n")
    with pytest.raises(UnreadableError, match="more than 89,478,485 pixels"):
        open_image(tmp_path / "a.pgm")


@pytest.mark.parametrize(
    ("target", "words"), [("/dev/zero", "a device"), ("pipe", "a named pipe"), (".", "a folder")]
)
def test_what_is_no_file_is_not_opened(tmp_path: Path, target: str, words: str) -> None:
    """Opening a named pipe would wait for ever, a device would never end."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.png").symlink_to(tmp_path / target)
    with pytest.raises(UnreadableError, match=f"image: it is {words}, not a file"):
        open_image(tmp_path / "a.png")


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    """It is not read at all."""
    with (tmp_path / "a.png").open("wb") as file:
        file.truncate(LARGEST + 1)  # takes no space
    with pytest.raises(UnreadableError, match=r"it has 2,147,483,649 bytes, and at most"):
        open_image(tmp_path / "a.png")


@pytest.mark.parametrize("size", [(1, 1), (30_000, 1), (1, 30_000), (3, 2)])
@pytest.mark.parametrize("mode", ["1", "L", "RGBA", "I;16"])
def test_lines_and_dots(size: tuple[int, int], mode: str) -> None:
    """An image of one pixel or 30,000 in a row is cropped, resized and fingerprinted."""
    image = Image.new(mode, size)
    for form in (Preprocessing(), Preprocessing(height=3, width=1, resize_mode="stretch")):
        assert form.pixels(image).shape == (3, form.height, form.width)
    assert len(perceptual(image)) == 16


def test_nothing() -> None:
    """Zero bytes are no image."""
    with pytest.raises(ValueError, match="it is empty"):
        open_content(b"")


def test_an_animation_may_declare_any_size(tmp_path: Path) -> None:
    """A WebP of some hundred bytes says that its frames are 16 million pixels wide."""
    frames = [Image.new("RGB", (11, 9), colour) for colour in ("red", "blue")]
    frames[0].save(tmp_path / "a.webp", save_all=True, append_images=frames[1:], lossless=True)
    content = bytearray((tmp_path / "a.webp").read_bytes())
    assert content[12:16] == b"VP8X"
    content[26] = 0xFF  # the upper byte of width - 1
    (tmp_path / "a.webp").write_bytes(content)
    with pytest.raises(
        UnreadableError, match=r"a frame of this animation has [\d,]+ x 9, more than"
    ):
        open_image(tmp_path / "a.webp")


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2))


def rows_of(pixels: np.ndarray, *, interlaced: bool) -> bytes:
    """The data of a PNG, not yet packed: each row without a filter; of a pass its own rows."""
    passes = (*PASSES, (0, 1, 1, 2)) if interlaced else ((0, 0, 1, 1),)
    parts = [pixels[top::down, left::across] for left, top, across, down in passes]
    return b"".join(b"\0" + row.tobytes() for part in parts for row in part if row.size)


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (3, 2), (5, 9), (33, 32)])
def test_a_png_without_its_last_byte(size: tuple[int, int], interlaced: bool) -> None:
    """Packed as a whole, so that nothing but its rows tells: Pillow leaves the others black."""
    width, height = size
    pixels = np.random.default_rng(1).integers(0, 256, (height, width, 3), dtype=np.uint8)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, interlaced)
    data = rows_of(pixels, interlaced=interlaced)

    def png(data: bytes, end: bytes = chunk(b"IEND", b"")) -> bytes:
        packed = chunk(b"IDAT", zlib.compress(data))
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + packed + end

    assert np.array_equal(np.asarray(load(lambda: png(data))), pixels)
    for cut in (png(data[:-1]), png(data[: len(data) // 2]), png(data, b"")):
        with pytest.raises(ValueError, match="cut off"):
            load(lambda cut=cut: cut)  # type: ignore[misc]
