"""Check images by their names, or those of a recipe."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import torch

from manyheads.check_data.checked import Checked, naming_parameters
from manyheads.check_data.text_check import is_recipe
from manyheads.data.checks.image_checks import Seen, findings, look
from manyheads.data.images.image_file import SUFFIXES
from manyheads.data.images.image_set import ImageSet, Preprocessing, hold_out
from manyheads.errors import UsageError
from manyheads.files import expand_user
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import find_recipe, here
from manyheads.recipe_data.image_data import ImageRecipe, LabelledImageData
from manyheads.recipe_data.image_splits import find_images

FILES = {".tar", *SUFFIXES}  # that hold images, and never text


def are_images(name: str) -> bool:
    """Tell whether a name is that of images: a folder, shards, a recipe."""
    if name == "digits" or Path(name).suffix in FILES:
        return True
    if is_recipe(name):
        return read_recipe(find_recipe(name)).data.has_images
    return expand_user(name).is_dir()


def check_images(
    names: list[str],
    *,
    image: str = "image",
    label: str = "label",
    multi_label: bool = False,
    test: str | None = None,
    valid: str | None = None,
) -> Iterator[Checked]:
    """Check sets of images, also against the splits that they must not overlap with."""
    data = LabelledImageData(train="", image=image, label=label, multi_label=multi_label)

    def look(name: str) -> Seen:
        with naming_parameters():
            found = find_images(here(name), data)
        return _look(found)

    others = {"test": test, "valid": valid}
    held_out = {split: look(name) for split, name in others.items() if name is not None}
    for name in names:
        yield _check(name, look(name), held_out)


def check_image_recipe(name: str) -> Iterator[Checked]:
    """Check the images of a recipe: training against validation and test, these by themselves."""
    recipe = cast(ImageRecipe, read_recipe(find_recipe(name)))
    if not recipe.data.has_images:
        raise UsageError(f"The recipe {name!r} does not train on images: leave out `images`.")
    data = recipe.data
    train, sets = find_images(data.train, data), {}
    if data.valid is not None:
        sets["valid"] = find_images(data.valid, data)
    elif data.hold_out:
        train, sets["valid"] = hold_out(train, data.hold_out, data.random_state)
    if data.test is not None:
        sets["test"] = find_images(data.test, data)
    held_out = {split: _look(images, recipe.image) for split, images in sets.items()}
    yield _check(data.train, _look(train, recipe.image), held_out)
    for split, seen in held_out.items():
        yield _check(getattr(data, split) or f"{data.hold_out:,} held out of {data.train}", seen)


def _check(name: str, seen: Seen, held_out: Mapping[str, Seen] | None = None) -> Checked:
    images = seen.images
    counts = {"images": len(images), "classes": len(images.classes)}
    classes = f", {len(images.classes)} classes" if images.classes else ""
    heading = f"{name}: {len(images):,} images{classes}"
    return Checked(name, images.origin, heading, counts, findings(seen, held_out))


def _look(images: ImageSet, model: Preprocessing | None = None) -> Seen:
    return look(images, model, threads=torch.get_num_threads())
