"""From the names in a [data] table to images with texts."""

from collections.abc import Sequence
from dataclasses import replace

from manyheads.data.checks.held_out_images import hold_out_captioned
from manyheads.data.images import caption_readers
from manyheads.data.images.captioned_images import CaptionedImages, Selection, describe
from manyheads.data.text.rows import HUB, TABLES
from manyheads.errors import DataError, RecipeError, UsageError
from manyheads.project.paths import find_data, here, is_hub_data, split_selection
from manyheads.recipe_data.caption_data import CaptionData, CaptionRecipe
from manyheads.recipe_data.named_splits import named
from manyheads.recipe_data.pair_splits import refuse_converted
from manyheads.train.ranks import exchange, rank_and_world

FEW = 8  # problems named in an error


def read_captioned(name: str, data: CaptionData) -> CaptionedImages:
    """Find images and their texts, without opening any image.

    A name that ends in "[column=value]" has these rows of a table only. Images without text, texts
    without image and texts that are none are left out, and listed, if data.on_error says so.

    Raises:
        DataError: a file cannot be read, or there are such images or texts.
    """
    captions = find_captioned(name, data)
    lost = [describe(problem) for problem in captions.problems if not problem.harmless]
    if lost and data.on_error == "stop":
        raise DataError(
            f"{captions.images.origin}: {len(lost):,} images or texts cannot be used: "
            f"{'; '.join(lost[:FEW])}{'; ...' if len(lost) > FEW else ''}. Repair or remove them; "
            'data.on_error = "skip" trains without them, and check-data counts them.'
        )
    return replace(captions, images=replace(captions.images, left_out=tuple(lost)))


def read_given(name: str, data: CaptionData) -> CaptionedImages:
    """Find other images with texts than the recipe's, without opening any image.

    A folder of images with .txt files beside them and COCO's file have no columns to name, so those
    of the recipe do not count; texts without a language are in the first of the model.

    Raises:
        NotFoundError: there are no such data.
        DataError: a file cannot be read, or has images or texts that cannot be used.
    """
    name = here(name)
    if not name.startswith(HUB):
        paths = find_data(split_selection(name)[0], data.root)
        if any(path.is_dir() or path.suffix == ".json" for path in paths):
            own: dict[str, object] = {"texts": {}, "caption": None, "language_column": None}
            if data.texts:
                own |= {"languages": tuple(data.texts), "language": next(iter(data.texts))}
            data = data.model_copy(update=own)
    return read_captioned(name, data)


def find_captioned(name: str, data: CaptionData) -> CaptionedImages:
    """Find images and their texts; what cannot be used is among their problems.

    Raises:
        UsageError: the name is not one of images with texts.
        DataError: a file cannot be read.
    """
    refuse_converted(name)
    file, rows = split_selection(name)
    only = None if rows is None else Selection(*rows)
    columns = replace(data.caption_columns, only=only)
    if is_hub_data(file):
        return caption_readers.read_captioned_hub(file, columns)
    paths = find_data(file, data.root)
    suffixes = {"folder" if path.is_dir() else path.suffix for path in paths}
    if len(suffixes) > 1 or (len(paths) > 1 and suffixes <= {"folder", ".json"}):
        raise RecipeError(
            f"{name!r} matches {', '.join(map(str, paths[:FEW]))}: name one folder, one .json, or "
            "files of one kind."
        )
    (suffix,) = suffixes
    if only is not None and suffix not in (*TABLES, ".json"):
        raise UsageError(f"{name!r} selects rows, but {paths[0]} is not a table: leave out {only}.")
    folder = None if data.images is None else find_data(data.images, data.root)[0]
    if suffix == "folder":
        return caption_readers.read_caption_folder(paths[0], columns)
    if suffix == ".tar":
        return caption_readers.read_caption_shards(paths, columns)
    if suffix == ".json":
        return caption_readers.read_coco(paths[0], columns, folder=folder)
    if suffix in TABLES:
        return caption_readers.read_caption_tables(paths, columns, folder=folder)
    raise UsageError(
        f"{name!r} is not read as images with texts: name a folder of images with .txt files "
        f"beside them, a table ({', '.join(TABLES)}), a .tar, or a .json as COCO has it."
    )


def readable_captioned(name: str, recipe: CaptionRecipe) -> CaptionedImages:
    """Find images with texts; open them all and leave out bad ones if data.on_error says so."""
    captions = read_captioned(name, recipe.data)
    if recipe.data.on_error == "stop":
        return captions
    rank, world = rank_and_world()
    readable = captions.readable(recipe.image, rank=rank, world=world, gather=exchange)
    if not len(readable):
        raise DataError(f"{captions.images.origin}: none of {len(captions):,} images can be read.")
    return readable


def captioned_splits(recipe: CaptionRecipe) -> tuple[CaptionedImages, CaptionedImages]:
    """Read training and validation images with their texts."""
    data = recipe.data
    train = readable_captioned(data.train, recipe)
    if data.valid is not None:
        valid = readable_captioned(data.valid, recipe)
    elif data.hold_out:
        train, valid = hold_out_captioned(train, data.hold_out, data.random_state)
    else:
        raise RecipeError(
            "There is no validation data: set data.valid, or data.hold_out to a number of images."
        )
    refuse_other_languages(valid, train.languages)
    return train, valid


def captioned_split(split: str, recipe: CaptionRecipe) -> CaptionedImages:
    """Read the images with texts that a recipe names for a split."""
    if split in ("train", "valid"):
        return captioned_splits(recipe)[split == "valid"]
    return readable_captioned(named(split, recipe.data), recipe)


def refuse_other_languages(captions: CaptionedImages, languages: Sequence[str]) -> None:
    """Refuse texts in languages that are not trained on.

    Raises:
        DataError: there are such texts.
    """
    known = dict.fromkeys(languages)
    unknown = [each for each in dict.fromkeys(captions.languages) if each not in known]
    if unknown:
        raise DataError(
            f"{captions.images.origin} has texts in {', '.join(unknown)}, which the training data "
            f"lack: they have {', '.join(known)}. Name the languages as in training, or leave "
            "these texts out."
        )
