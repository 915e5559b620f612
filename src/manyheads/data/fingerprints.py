"""Fingerprints of pictures: equal pixels have equal digests, similar pictures similar bits."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from PIL import Image

from manyheads.data.images import Preprocessing
from manyheads.data.pictures import Picture

SIDE = 8
SMALL = Preprocessing(height=SIDE + 1, width=SIDE + 1, mode="L", fit="stretch", interpolation="box")
CHUNKS = 8  # of 16 bits: of 7 differing bits or fewer, at least one chunk has none
GROUP = 2000  # pictures that share a chunk and are still compared one by one


def digest(picture: Picture) -> str:
    """Hash the decoded pixels: the same picture in another file format is the same."""
    values = np.asarray(picture)
    kind = f"{values.shape} {values.dtype} {getattr(picture, 'mode', '')}"
    return hashlib.sha256(kind.encode() + values.tobytes()).hexdigest()


def perceptual(picture: Picture) -> np.ndarray:
    """Return 128 bits: where brightness rises to the right, and downwards (difference hash).

    A small copy of the picture is compared, so that size, compression and slight changes of colour
    leave nearly all bits as they are. (16 bytes.)
    """
    if isinstance(picture, np.ndarray):
        picture = Image.fromarray(picture.mean(axis=2).round().astype(np.uint8))
    values = SMALL.pixels(picture)[0].astype(np.int16)
    across = values[:SIDE, 1:] > values[:SIDE, :-1]
    down = values[1:, :SIDE] > values[:-1, :SIDE]
    return np.packbits(np.concatenate((across.ravel(), down.ravel())))


def similar(bits: np.ndarray, limit: int) -> Iterable[tuple[int, int]]:
    """Find pairs of pictures whose fingerprints differ in at most `limit` bits, limit <= 7.

    Args:
        bits: (picture, 16) bytes.
        limit: how many of 128 bits may differ.
    """
    chunks = np.ascontiguousarray(bits).view(np.uint16)  # (picture, CHUNKS)
    found: set[tuple[int, int]] = set()
    for column in chunks.T:
        order = np.argsort(column, kind="stable")
        edges = np.nonzero(np.diff(column[order]))[0] + 1
        for group in np.split(order, edges):
            # Of very many that share a chunk (plain white) only neighbours are compared.
            for start in range(0, len(group) if len(group) > 1 else 0, GROUP):
                found.update(_near(bits, group[start : start + GROUP], limit))
    return sorted(found)


def _near(bits: np.ndarray, group: np.ndarray, limit: int) -> Iterable[tuple[int, int]]:
    group = np.sort(group)
    for place, first in enumerate(group[:-1]):
        others = group[place + 1 :]
        unlike = np.bitwise_count(bits[others] ^ bits[first]).sum(axis=1, dtype=int)
        for second in others[unlike <= limit]:
            yield int(first), int(second)


def repeated(digests: Iterable[str]) -> dict[str, list[int]]:
    """Group what occurs more than once."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, each in enumerate(digests):
        places[each].append(place)
    return {each: found for each, found in places.items() if len(found) > 1}
