"""From the names in a [data] table to images with texts."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from manyheads.app.data.sources import named
from manyheads.app.data.tables import CaptionData, CaptionRecipe
from manyheads.app.project.paths import find_data, split_selection
from manyheads.data.checks.image_fingerprints import digest
from manyheads.data.checks.leakage import plain
from manyheads.data.images.captioned_images import CaptionedImages, read_captioned_parquet
from manyheads.data.images.image_set import spread
from manyheads.errors import DataError, RecipeError


def read_captioned(name: str, data: CaptionData) -> CaptionedImages:
    """Find images and their texts, without opening any image.

    A name ending in "[column=value]" selects rows of a table.
    """
    file, rows = split_selection(name)
    return read_captioned_parquet(find_data(file, data.root), data.caption_columns, rows)


def captioned_splits(recipe: CaptionRecipe) -> tuple[CaptionedImages, CaptionedImages]:
    """Read training and validation images with their texts."""
    data = recipe.data
    train = _readable(read_captioned(data.train, data), recipe)
    if data.valid is not None:
        return train, _readable(read_captioned(data.valid, data), recipe)
    if data.hold_out == 0:
        raise RecipeError(
            "There is no validation data: set data.valid, or data.hold_out to a number of images."
        )
    return hold_out_captioned(train, data.hold_out, data.random_state)


def captioned_split(split: str, recipe: CaptionRecipe) -> CaptionedImages:
    """Read the images with texts that a recipe names for a split."""
    if split in ("train", "valid"):
        return captioned_splits(recipe)[split == "valid"]
    return _readable(read_captioned(named(split, recipe.data), recipe.data), recipe)


def _readable(found: CaptionedImages, recipe: CaptionRecipe) -> CaptionedImages:
    """Leave out images that cannot be read, if data.on_error says so."""
    if recipe.data.on_error == "stop":
        return found
    readable = found.images.readable(recipe.image, torch.get_num_threads())
    left_out = {each.rpartition(" (")[0] for each in readable.left_out}
    kept = [index for index, name in enumerate(found.images.names) if name not in left_out]
    if not kept:
        raise DataError(f"{found.images.origin}: none of {len(found):,} images can be read.")
    return replace(found.select(np.array(kept)), images=readable)


def hold_out_captioned(
    found: CaptionedImages, count: int, random_state: int
) -> tuple[CaptionedImages, CaptionedImages]:
    """Split a set into the rest and at most `count` held-out images, chosen at random.

    Images with equal pixels stay together, and so do images that have the same texts in a language
    (all of them, in any order, ignoring case and white space). Every image is opened once.

    Raises:
        DataError: no `count` images can be held out.
        UnreadableError: an image cannot be read.
    """
    groups = _together(found)
    held: list[int] = []
    for number in np.random.default_rng(random_state).permutation(len(groups)):
        if len(held) + len(groups[number]) <= count:
            held += groups[number]
    if not held or len(held) == len(found):
        raise DataError(
            f"{count:,} images cannot be held out of {found.images.origin}: {len(found):,} images, "
            f"{len(groups):,} of them with pixels and texts of their own. Change data.hold_out."
        )
    part = np.zeros(len(found), dtype=bool)
    part[held] = True
    rest, out = found.select((~part).nonzero()[0]), found.select(part.nonzero()[0])
    return rest, replace(out, images=replace(out.images, left_out=()))


def _together(found: CaptionedImages) -> list[list[int]]:
    """Group images that belong to the same side of a split."""
    leader = list(range(len(found)))

    def lead(index: int) -> int:
        while leader[index] != index:
            leader[index] = leader[leader[index]]
            index = leader[index]
        return index

    pixels = spread(
        lambda index: digest(found.images.open(index)), range(len(found)), torch.get_num_threads()
    )
    seen: dict[str, int] = {}
    for index, key in enumerate(pixels):
        for each in (key, *_text_keys(found, found.captions(index))):
            leader[lead(index)] = lead(seen.setdefault(each, index))
    groups: dict[int, list[int]] = {}
    for index in range(len(found)):
        groups.setdefault(lead(index), []).append(index)
    return list(groups.values())


def _text_keys(found: CaptionedImages, captions: Sequence[int]) -> list[str]:
    """Return a hash of the texts of an image in each language."""
    texts: dict[str, set[str]] = {}
    for caption in captions:
        texts.setdefault(found.languages[caption], set()).add(plain(found.texts[caption]))
    lines = ("\n".join([language, *sorted(each)]) for language, each in texts.items())
    return [hashlib.sha256(line.encode(errors="surrogatepass")).hexdigest() for line in lines]
