"""One image: what its numbers mean does not depend on what else it shows."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from manyheads.data.checks.image_fingerprints import perceptual
from manyheads.data.images.image_file import eight_bit_array, naming, open_content, open_image
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
@pytest.mark.parametrize("format", ["png", "jpeg", "gif", "bmp", "tiff", "webp"])
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


def test_nothing() -> None:
    """Zero bytes are no image."""
    with pytest.raises(ValueError, match="it is empty"):
        open_content(b"")
