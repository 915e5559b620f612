"""Check images with texts by their names, or those of a recipe."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import torch
from pydantic import ValidationError

from manyheads.check_data.checked import Checked, naming_parameters
from manyheads.check_data.text_check import is_recipe
from manyheads.data.checks.caption_checks import (
    LanguageFacts,
    SeenCaptions,
    caption_findings,
    language_facts,
    look_at_captions,
)
from manyheads.data.checks.separation import hold_out_captioned
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_set import Preprocessing
from manyheads.data.text.lines import Problem
from manyheads.errors import UsageError
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import find_recipe, here
from manyheads.recipe_data.caption_data import CaptionData, CaptionRecipe
from manyheads.recipe_data.caption_splits import find_captioned


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
    columns = {}
    for each in texts:
        language, _, names = each.partition("=")
        columns[language] = [name for name in names.split(",") if name]
    try:
        return CaptionData.model_validate({"train": "", "texts": columns} | keys)
    except ValidationError as error:
        reasons = [each["msg"].removeprefix("Value error, ") for each in error.errors()]
        raise UsageError(
            f"{'; '.join(reasons)}. Name columns with `texts=en=name,keywords`, or one column with "
            "`caption`, and its language with `language` or `language_column`."
        ) from None


def check_captions(
    names: Sequence[str], data: CaptionData, *, test: str | None = None, valid: str | None = None
) -> Iterator[CheckedCaptions]:
    """Check sets of images with texts, also against the splits that they must not overlap with.

    `data` says in which columns, languages and folder they are.
    """

    def look(name: str) -> SeenCaptions:
        with naming_parameters():
            found = _find(here(name), data)
        return _look(*found)

    others = {"test": test, "valid": valid}
    held_out = {split: look(name) for split, name in others.items() if name is not None}
    for name in names:
        yield _check(name, look(name), held_out)


def check_caption_recipe(name: str) -> Iterator[CheckedCaptions]:
    """Check the data of a recipe: training against validation and test, these by themselves."""
    recipe = cast(CaptionRecipe, read_recipe(find_recipe(name)))
    data = recipe.data
    if not data.has_captions:
        raise UsageError(
            f"The recipe {name!r} does not train on images with texts: leave out `captions`."
        )
    if data.drawn:
        raise UsageError(
            f"The recipe {name!r} draws its images from texts, so there are none to check."
        )
    train, problems = _find(data.train, data)
    sets: dict[str, tuple[CaptionedImages, list[Problem]]] = {}
    if data.valid is not None:
        sets["valid"] = _find(data.valid, data)
    elif data.hold_out:
        threads = torch.get_num_threads()
        train, held = hold_out_captioned(train, data.hold_out, data.random_state, threads)
        sets["valid"] = held, []
    if data.test is not None:
        sets["test"] = _find(data.test, data)
    held_out = {split: _look(*each, recipe.image) for split, each in sets.items()}
    yield _check(data.train, _look(train, problems, recipe.image), held_out)
    for split, looked in held_out.items():
        yield _check(str(data.split_name(split)), looked)


def _find(name: str, data: CaptionData) -> tuple[CaptionedImages, list[Problem]]:
    problems: list[Problem] = []
    return find_captioned(name, data, problems.append), problems


def _look(
    captions: CaptionedImages,
    problems: Sequence[Problem],
    model: Preprocessing | None = None,
) -> SeenCaptions:
    return look_at_captions(captions, problems, model, threads=torch.get_num_threads())


def _check(
    name: str, looked: SeenCaptions, held_out: Mapping[str, SeenCaptions] | None = None
) -> CheckedCaptions:
    captions, facts = looked.captions, language_facts(looked)
    counts = {"images": len(captions), "texts": len(captions.texts)}
    languages = f" in {', '.join(facts)}"
    heading = f"{name}: {len(captions):,} images, {len(captions.texts):,} texts{languages}"
    found = caption_findings(looked, held_out)
    return CheckedCaptions(name, captions.images.origin, heading, counts, found, facts)
