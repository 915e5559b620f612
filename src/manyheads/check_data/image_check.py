"""Check images, with classes or with texts, by their names or those of a recipe."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic import ValidationError

from manyheads.check_data.checked import Checked
from manyheads.check_data.text_check import is_recipe
from manyheads.data.checks.caption_checks import (
    LanguageFacts,
    SeenCaptions,
    caption_findings,
    language_facts,
    look_at_captions,
)
from manyheads.data.checks.held_out_images import hold_out_captioned
from manyheads.data.checks.image_checks import Seen, findings, look
from manyheads.data.images.image_file import SUFFIXES
from manyheads.data.images.image_set import hold_out
from manyheads.errors import DataError, UsageError
from manyheads.files import expand_user
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import find_recipe, here
from manyheads.recipe_data.caption_data import CaptionData
from manyheads.recipe_data.caption_splits import find_captioned
from manyheads.recipe_data.image_data import ImageData, ImageRecipe
from manyheads.recipe_data.image_splits import find_images

FILES = {".tar", *SUFFIXES}  # that hold images, and never text
_KEY = re.compile(r"data\.(image|label|texts|caption|language|language_column)\b")


def are_images(name: str) -> bool:
    """Tell whether a name is that of images: a folder, shards, a recipe."""
    if name == "digits" or Path(name).suffix in FILES:
        return True
    if is_recipe(name):
        return read_recipe(find_recipe(name)).data.has_images
    return expand_user(name).is_dir()


class _Way(NamedTuple):
    """How images are found, looked at and reported: those with classes, or those with texts."""

    find: Callable[[str, Any], Any]
    hold_out: Callable[..., tuple[Any, Any]]
    look: Callable[..., Any]
    report: Callable[..., Checked]
    held_out: str  # their name


def _way(data: ImageData) -> _Way:
    if data.has_captions:
        held_out = "{0.hold_out:,} images of {0.train}"
        return _Way(find_captioned, hold_out_captioned, look_at_captions, _report_texts, held_out)
    return _Way(find_images, hold_out, look, _report, "{0.hold_out:,} held out of {0.train}")


def check_images(
    names: Sequence[str], data: ImageData, *, test: str | None = None, valid: str | None = None
) -> Iterator[Checked]:
    """Check sets of images, also against the splits that they must not overlap with.

    `data` says in which columns, languages and folder they are.
    """
    way = _way(data)

    def seen(name: str) -> Any:
        try:
            found = way.find(here(name), data)
        except (DataError, UsageError) as error:  # without a recipe, data.image is `image`
            kind = UsageError if isinstance(error, UsageError) else DataError
            raise kind(_KEY.sub(r"`\1`", str(error))) from error
        return way.look(found)

    others = {"test": test, "valid": valid}
    held_out = {split: seen(name) for split, name in others.items() if name is not None}
    for name in names:
        yield way.report(name, seen(name), held_out)


def check_image_recipe(name: str, *, captions: bool) -> Iterator[Checked]:
    """Check the images of a recipe: training against validation and test, these by themselves."""
    recipe = cast(ImageRecipe, read_recipe(find_recipe(name)))
    data = recipe.data
    if captions and not data.has_captions:
        raise UsageError(
            f"The recipe {name!r} does not train on images with texts: leave out `captions`."
        )
    if not captions and not data.has_images:
        raise UsageError(f"The recipe {name!r} does not train on images: leave out `images`.")
    if isinstance(data, CaptionData) and data.drawn:
        raise UsageError(
            f"The recipe {name!r} draws its images from texts, so there are none to check."
        )
    way = _way(data)
    train, sets = way.find(data.train, data), {}
    if data.valid is not None:
        sets["valid"] = way.find(data.valid, data)
    elif data.hold_out:
        train, sets["valid"] = way.hold_out(train, data.hold_out, data.random_state)
    if data.test is not None:
        sets["test"] = way.find(data.test, data)
    held_out = {split: way.look(images, recipe.image) for split, images in sets.items()}
    yield way.report(data.train, way.look(train, recipe.image), held_out)
    for split, seen in held_out.items():
        yield way.report(getattr(data, split) or way.held_out.format(data), seen)


def _report(name: str, seen: Seen, held_out: Mapping[str, Seen] | None = None) -> Checked:
    images = seen.images
    counts = {"images": len(images), "classes": len(images.classes)}
    classes = f", {len(images.classes)} classes" if images.classes else ""
    heading = f"{name}: {len(images):,} images{classes}"
    return Checked(name, images.origin, heading, counts, findings(seen, held_out))


@dataclass(frozen=True)
class CheckedCaptions(Checked):
    """Images with texts and their findings."""

    languages: Mapping[str, LanguageFacts]

    def as_json(self) -> dict[str, Any]:
        """Write it as plain values, with the counts of each language."""
        facts = {language: asdict(each) for language, each in self.languages.items()}
        return super().as_json() | {"languages": facts}


def are_captions(name: str) -> bool:
    """Tell whether a name is that of images with texts: COCO's file, or a recipe."""
    if is_recipe(name):
        return read_recipe(find_recipe(name)).data.has_captions
    return name.endswith(".json")


def named_columns(*, texts: Sequence[str] = (), **keys: Any) -> CaptionData:
    """Return the [data] table for columns that are named one by one.

    Args:
        texts: "LANGUAGE=COLUMN,...".
        keys: other keys of the table.

    Raises:
        UsageError: they contradict each other.
    """
    if "images" in keys:
        keys["images"] = here(keys["images"])
    named = (each.partition("=") for each in texts)
    columns = {code: [name for name in names.split(",") if name] for code, _, names in named}
    try:
        return CaptionData.model_validate({"train": "", "texts": columns} | keys)
    except ValidationError as error:
        reasons = [each["msg"].removeprefix("Value error, ") for each in error.errors()]
        raise UsageError(
            f"{'; '.join(reasons)}. Name columns with `texts=en=name,keywords`, or one column with "
            "`caption`, and its language with `language` or `language_column`."
        ) from None


def _report_texts(
    name: str, looked: SeenCaptions, held_out: Mapping[str, SeenCaptions] | None = None
) -> CheckedCaptions:
    captions, facts = looked.captions, language_facts(looked)
    counts = {"images": len(captions), "texts": len(captions.texts)}
    languages = f" in {', '.join(facts)}"
    heading = f"{name}: {len(captions):,} images, {len(captions.texts):,} texts{languages}"
    found = caption_findings(looked, held_out)
    return CheckedCaptions(name, captions.images.origin, heading, counts, found, facts)
