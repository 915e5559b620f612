"""Check pictures named on the command line, or those of a recipe."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch

from manyheads.app.paths import find_recipe, here, shipped
from manyheads.app.recipe import ClassifyData, PictureRecipe, read_recipe
from manyheads.app.sources import find_images
from manyheads.data.formats import HUB
from manyheads.data.image_checks import PictureFinding, Seen, findings, look
from manyheads.data.images import ImageSet, Preprocessing, hold_out
from manyheads.data.pictures import SUFFIXES
from manyheads.errors import UsageError

FILES = {".tar", *SUFFIXES}  # that hold pictures, and never text


class CheckedImages(NamedTuple):
    """What a check found in a set of pictures."""

    name: str
    images: ImageSet
    findings: list[PictureFinding]

    @property
    def errors(self) -> int:
        """How many kinds of damage keep it from being trained on."""
        return sum(finding.severity == "error" for finding in self.findings)


def are_images(name: str) -> bool:
    """Say whether a name on the command line is that of pictures: a folder, shards, a recipe."""
    if name == "digits" or Path(name).suffix in FILES:
        return True
    if name in shipped("recipes") or name.endswith(".toml"):
        return isinstance(read_recipe(find_recipe(name)), PictureRecipe)
    return Path(name).expanduser().is_dir()


def check_images(
    names: list[str],
    *,
    image: str = "image",
    label: str = "label",
    multi_label: bool = False,
    test: str | None = None,
    valid: str | None = None,
) -> list[CheckedImages]:
    """Check sets of pictures, also against the splits that they must not overlap with.

    Raises:
        NotFoundError: one is not there.
        DataError: it cannot be read as a set of pictures at all.
    """
    data = ClassifyData(train="", image=image, label=label, multi_label=multi_label)
    splits = {"test": test, "valid": valid}
    held_out = {
        split: _look(find_images(_here(name), data), None)
        for split, name in splits.items()
        if name is not None
    }
    return [_check(name, find_images(_here(name), data), held_out, None) for name in names]


def check_image_recipe(name: str) -> list[CheckedImages]:
    """Check the pictures of a recipe: training against validation and test, these by themselves."""
    recipe = read_recipe(find_recipe(name))
    if not isinstance(recipe, PictureRecipe):
        raise UsageError(f"The recipe {name!r} does not train on pictures: leave out --images.")
    data = recipe.data
    train, sets = find_images(data.train, data), {}
    if data.valid is not None:
        sets["valid"] = find_images(data.valid, data)
    elif data.hold_out:
        train, sets["valid"] = hold_out(train, data.hold_out, data.random_state)
    if data.test is not None:
        sets["test"] = find_images(data.test, data)
    held_out = {split: _look(images, recipe.image) for split, images in sets.items()}
    checked = [_check(data.train, train, held_out, recipe.image)]
    for split, seen in held_out.items():
        named = getattr(data, split) or f"{data.hold_out:,} held out of {data.train}"
        checked.append(CheckedImages(named, seen.images, findings(seen)))
    return checked


def _check(
    name: str, images: ImageSet, held_out: Mapping[str, Seen], model: Preprocessing | None
) -> CheckedImages:
    return CheckedImages(name, images, findings(_look(images, model), held_out))


def _look(images: ImageSet, model: Preprocessing | None) -> Seen:
    return look(images, model, threads=torch.get_num_threads())


def _here(name: str) -> str:
    return name if name.startswith(HUB) else here(name)
