"""Hold out images with texts so that no copy of an image or of its texts is left for training."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from manyheads.data.checks.image_fingerprints import digest
from manyheads.data.checks.leakage import plain
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_set import in_threads
from manyheads.errors import DataError, UnreadableError


def hold_out_captioned(
    captions: CaptionedImages, count: int, random_state: int
) -> tuple[CaptionedImages, CaptionedImages]:
    """Split a set into the rest and at most `count` held-out images, chosen at random.

    Images with equal pixels stay together, and so do images that have the same texts in a language
    (all of them, in any order, ignoring case and white space); images that share some of several
    texts do not. Fewer than `count` are held out only where the groups do not fit. Every image is
    opened once; one that cannot be read is equal to no other.

    Raises:
        DataError: no `count` images can be held out.
    """
    groups = together(captions)
    held: list[int] = []
    for number in np.random.default_rng(random_state).permutation(len(groups)):
        if len(held) + len(groups[number]) <= count:
            held += groups[number]
    if not held or len(held) == len(captions):
        raise DataError(
            f"{count:,} images cannot be held out of {captions.images.origin}: it has "
            f"{len(captions):,}, of which {len(groups):,} have pixels and texts of their own. "
            "Change data.hold_out."
        )
    part = np.zeros(len(captions), dtype=bool)
    part[held] = True
    rest, out = captions.select((~part).nonzero()[0]), captions.select(part.nonzero()[0])
    # Images that were left out belong to neither part: they are reported once, with the rest.
    return rest, replace(out, images=replace(out.images, left_out=()), problems=())


def together(captions: CaptionedImages) -> list[list[int]]:
    """Group images that belong to the same side of a split, each group and all groups in order."""

    def pixels(index: int) -> str | None:
        try:
            return digest(captions.images.open(index))
        except UnreadableError:
            return None

    seen: dict[str, int] = {}
    pairs = (
        (index, seen.setdefault(each, index))
        for index, key in enumerate(in_threads(pixels, range(len(captions))))
        for each in (key, *text_keys(captions, index))
        if each is not None
    )
    return join(len(captions), pairs)


def join(count: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Group the numbers below `count` so that pairs are together, each group and all in order."""
    group_of = [[index] for index in range(count)]
    for one, other in pairs:
        small, large = sorted((group_of[one], group_of[other]), key=len)
        if small is not large:
            large += small
            for index in small:
                group_of[index] = large
    return sorted(sorted(group) for group in {id(each): each for each in group_of}.values())


def text_keys(captions: CaptionedImages, index: int) -> Iterator[str]:
    """Yield a hash of all texts of an image in each of its languages."""
    for language, texts in by_language(captions, index).items():
        line = "\n".join([language, *sorted(set(map(plain, texts)))])
        yield hashlib.sha256(line.encode()).hexdigest()


def by_language(captions: CaptionedImages, index: int) -> dict[str, list[str]]:
    """Return the texts of an image by language."""
    texts: dict[str, list[str]] = {}
    for number in captions.captions(index):
        texts.setdefault(captions.languages[number], []).append(captions.texts[number])
    return texts
