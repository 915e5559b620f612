"""Fingerprints of images: a digest for equal pixels, a perceptual hash for similar images."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from PIL import Image

from manyheads.data.images.image_file import ImageContent
from manyheads.data.images.image_set import Preprocessing

SIDE = 8
SMALL = Preprocessing(
    height=SIDE + 1, width=SIDE + 1, mode="L", resize_mode="stretch", interpolation="box"
)
CHUNKS = 8  # of 16 bits each: if at most 7 bits differ, at least one chunk is equal
GROUP = 2000  # images with an equal chunk that are compared pairwise


def digest(image: ImageContent) -> str:
    """Hash the decoded pixels, whatever the file format."""
    values = np.asarray(image)
    kind = f"{values.shape} {values.dtype} {getattr(image, 'mode', '')}"
    return hashlib.sha256(kind.encode() + values.tobytes()).hexdigest()


def perceptual(image: ImageContent) -> np.ndarray:
    """Return a difference hash (16 bytes): where brightness rises to the right and downwards.

    It is computed on a small copy of the image, so that size, compression and slight changes of
    colour change few bits.
    """
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image.mean(axis=2).round().astype(np.uint8))
    values = SMALL.pixels(image)[0].astype(np.int16)
    across = values[:SIDE, 1:] > values[:SIDE, :-1]
    down = values[1:, :SIDE] > values[:-1, :SIDE]
    return np.packbits(np.concatenate((across.ravel(), down.ravel())))


def similar(bits: np.ndarray, limit: int) -> Iterable[tuple[int, int]]:
    """Find pairs of fingerprints (image, 16 bytes) that differ in at most `limit` <= 7 bits."""
    chunks = np.ascontiguousarray(bits).view(np.uint16)  # (image, CHUNKS)
    pairs: set[tuple[int, int]] = set()
    for column in chunks.T:
        order = np.argsort(column, kind="stable")
        edges = np.nonzero(np.diff(column[order]))[0] + 1
        for group in np.split(order, edges):
            # In a very large group (plain white images) only neighbours are compared.
            for start in range(0, len(group) if len(group) > 1 else 0, GROUP):
                pairs.update(_near(bits, group[start : start + GROUP], limit))
    return sorted(pairs)


def _near(bits: np.ndarray, group: np.ndarray, limit: int) -> Iterable[tuple[int, int]]:
    group = np.sort(group)
    for index, first in enumerate(group[:-1]):
        others = group[index + 1 :]
        distance = np.bitwise_count(bits[others] ^ bits[first]).sum(axis=1, dtype=int)
        for second in others[distance <= limit]:
            yield int(first), int(second)


def repeated(digests: Iterable[str]) -> dict[str, list[int]]:
    """Return the digests that occur more than once, with their indices."""
    indices: defaultdict[str, list[int]] = defaultdict(list)
    for index, each in enumerate(digests):
        indices[each].append(index)
    return {each: found for each, found in indices.items() if len(found) > 1}
