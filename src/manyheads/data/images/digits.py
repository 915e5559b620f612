"""Handwritten digits: the 1,797 grey images of 8 x 8 pixels in scikit-learn."""

import hashlib

import numpy as np
from PIL import Image

from manyheads.data.images.image_set import ImageSet
from manyheads.errors import optional_import


def read_digits() -> ImageSet:
    """Read all digits (Alpaydin & Kaynak 1998, the test part of UCI's optdigits).

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    with optional_import("scikit-learn", extra="demo"):
        from sklearn.datasets import load_digits
    digits = load_digits()
    pixels = np.round(digits.images * (255 / 16)).astype(np.uint8)  # ink is bright, as stored
    return ImageSet(
        labels=digits.target,
        classes=[str(digit) for digit in range(10)],
        names=[f"digit {index}" for index in range(len(pixels))],
        read=lambda index: Image.fromarray(pixels[index]),
        origin="scikit-learn's digits",
        hashes=(hashlib.sha256(pixels.tobytes() + bytes(digits.target.tolist())).hexdigest(),),
    )
