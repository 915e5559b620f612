"""Images that a recipe names."""

from dataclasses import replace

import numpy as np

from manyheads.data.images.digits import read_digits
from manyheads.data.images.image_file import SUFFIXES
from manyheads.data.images.image_set import ImageSet, hold_out, read_folder, read_unlabelled
from manyheads.data.images.image_tables import read_hub, read_tables
from manyheads.data.images.shards import read_shards
from manyheads.data.text.rows import LISTINGS, TABLES
from manyheads.errors import DataError, RecipeError, UsageError
from manyheads.project.paths import find_data, is_hub_data
from manyheads.recipe_data.image_data import ImageData, ImageRecipe, LabelledImageData
from manyheads.recipe_data.named_splits import named
from manyheads.recipe_data.pair_splits import refuse_converted
from manyheads.train.ranks import exchange, rank_and_world


def read_images(name: str, recipe: ImageRecipe) -> ImageSet:
    """Find images, whatever form they come in; leave out bad ones if data.on_error says so."""
    images = find_images(name, recipe.data)
    if recipe.data.on_error == "stop":
        return images
    found = readable_images(images, recipe)
    if not len(found):
        raise DataError(f"{images.origin}: none of {len(images):,} images can be read.")
    return found


def readable_images(images: ImageSet, recipe: ImageRecipe) -> ImageSet:
    """Leave out the images that cannot be read; of several ranks, each reads a part."""
    rank, world = rank_and_world()
    return images.readable(recipe.image, rank=rank, world=world, gather=exchange)


def find_images(name: str, data: ImageData) -> ImageSet:
    """Find images and the labels of a classifier, without opening any of them."""
    label = separator = None
    if isinstance(data, LabelledImageData):
        label, separator = data.label, data.separator if data.multi_label else None
    if name == "digits":
        digits = read_digits()
        if label is not None:
            return digits
        return replace(digits, labels=np.zeros(len(digits), dtype=int), classes=[])
    refuse_converted(name)
    if is_hub_data(name):
        return read_hub(name, data.image, label, separator)
    paths = find_data(name, data.root)
    if any(path.is_dir() for path in paths):
        if len(paths) > 1:
            raise RecipeError(f"{name!r} matches {len(paths)} folders or files: name one folder.")
        if separator is not None:
            raise RecipeError(
                "data.multi_label: class folders give each image one class. List the images "
                f"in a table ({', '.join(LISTINGS)}) instead."
            )
        return read_unlabelled(paths[0]) if label is None else read_folder(paths[0])
    suffixes = {path.suffix for path in paths}
    if suffixes <= SUFFIXES:
        raise UsageError(f"{name!r} is one image: name a folder or a table of images.")
    if suffixes == {".tar"}:
        return read_shards(paths, label, separator)
    if suffixes <= set(LISTINGS) and len(paths) > 1:
        raise RecipeError(f"{name!r} matches {len(paths)} tables: name one.")
    if len(suffixes) > 1 or not suffixes <= set(TABLES):
        raise UsageError(
            f"{name!r} is not read as images: name a folder of images, a table "
            f"({', '.join(LISTINGS)}), .parquet or .tar files."
        )
    return read_tables(paths, data.image, label, separator)


def image_splits(recipe: ImageRecipe) -> tuple[ImageSet, ImageSet]:
    """Read training and validation images."""
    data = recipe.data
    train = read_images(data.train, recipe)
    if data.valid is not None:
        return train, read_images(data.valid, recipe).relabel(train.classes)
    if data.hold_out == 0:
        raise RecipeError(
            "There is no validation data: set data.valid, or data.hold_out to a number of images."
        )
    return hold_out(train, data.hold_out, data.random_state)


def image_split(split: str, recipe: ImageRecipe) -> ImageSet:
    """Read the images that a recipe names for a split."""
    if split in ("train", "valid"):
        return image_splits(recipe)[split == "valid"]
    return read_images(named(split, recipe.data), recipe)
