"""Shared steps of preparing a run: images, sentences, limits, digests."""

import hashlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from manyheads.data.even_sample import limited
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.image_set import ImageSet
from manyheads.errors import DataError, RecipeError
from manyheads.files import sha256
from manyheads.models.model_config import ModelConfig
from manyheads.predict.task_pipeline import Prepared, Say
from manyheads.project.folder import LEFT_OUT, ModelFolder, write_preprocessing, write_vocabularies
from manyheads.project.sentencepiece_files import Vocabularies, sizes
from manyheads.recipe_data.image_data import ImageRecipe
from manyheads.recipe_data.image_splits import image_splits, readable_images
from manyheads.recipe_data.named_splits import reject_test_splits
from manyheads.train.device import best_device
from manyheads.train.training_task import Task


def digest(*hashes: str) -> str:
    """Combine hashes into one."""
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def images_digest(*parts: ImageSet) -> str:
    """Combine what identifies images: their files, and what is in them."""
    return digest(*(each for part in parts for each in (*part.hashes, part.content)))


def training_images(recipe: ImageRecipe, out: Path, say: Say) -> tuple[ImageSet, ImageSet]:
    """Read every training and validation image once; report what was left out, or stop."""
    train, valid = image_splits(recipe)
    return readable(train, valid, recipe, out, say, recipe.evaluate.limit)


def readable(
    train: ImageSet,
    valid: ImageSet,
    recipe: ImageRecipe,
    out: Path,
    say: Say,
    limit: int | None = None,
) -> tuple[ImageSet, ImageSet]:
    """Open every image once; report what was left out, or stop. `limit` is that of validation.

    Raises:
        DataError: an image cannot be read, and data.on_error is "stop".
        UsageError: one of the sets is a test split.
    """
    reject_test_splits(train, valid)
    if recipe.data.on_error == "stop":
        train, valid = (readable_images(part, recipe) for part in (train, valid))
        if lost := left_out(train, valid):
            raise DataError(
                f"{len(lost):,} of {len(train) + len(valid) + len(lost):,} images cannot be read: "
                f"{_first(lost)}. Remove them or save them again; "
                'data.on_error = "skip" trains without them.'
            )
    elif lost := left_out(train, valid):
        say(
            f"left out {len(lost):,} images that cannot be read, listed in {out / LEFT_OUT}: "
            f"{_first(lost)}"
        )
    return train, limited(valid, limit)


def readable_captions(
    train: CaptionedImages, valid: CaptionedImages, recipe: ImageRecipe, out: Path, say: Say
) -> tuple[CaptionedImages, CaptionedImages]:
    """The same for images with captions, whose unreadable ones are left out already."""
    images = readable(train.images, valid.images, recipe, out, say)
    valid = replace(valid, images=images[1])
    return replace(train, images=images[0]), limited(valid, recipe.evaluate.limit)


def prepared_with_captions(
    task: Task[Any],
    recipe: ImageRecipe,
    vocabularies: Vocabularies,
    train: CaptionedImages,
    valid: CaptionedImages,
) -> Prepared:
    """Say what a run with one vocabulary for its captions needs: what it writes, and its data."""

    def write(folder: Path) -> None:
        write_vocabularies(folder, vocabularies)
        write_preprocessing(folder, recipe.image)

    texts = digest(*train.texts, *train.languages, *valid.texts, *valid.languages)
    data = digest(images_digest(train.images, valid.images), texts)
    return Prepared(task, recipe.config(**sizes(vocabularies)), write, {"data": data})


def settings_of(recipe: ImageRecipe) -> dict[str, Any]:
    """Return what every task on images takes from its recipe, by the names of `TrainingImages`."""
    return {
        "preprocessing": recipe.image,
        "augmentation": recipe.augment,
        "config": recipe.train,
        "seed": recipe.seed,
        "device": best_device(),
    }


def left_out(*parts: ImageSet) -> list[str]:
    """List the images of some sets that cannot be read, each once."""
    return list(dict.fromkeys(each for part in parts for each in part.left_out))


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")


def refuse_longer(config: ModelConfig, *lengths: int) -> None:
    """Refuse texts with more tokens than the model learns positions for."""
    longest, most = max(lengths), config.token_limit
    if longest > most:
        raise RecipeError(
            f"A text to learn from or to validate on has {longest:,} tokens, but the model learns "
            f"only model.max_length = {most} positions: raise it, take other positions "
            '(model.positions = "sinusoidal"), or leave out long texts: train.max_length does so '
            "in training, and what is longer in data.valid must be split."
        )


def has_token_limit(config: ModelConfig) -> bool:
    """Tell whether a text can be too long for the model."""
    return config.token_limit < sys.maxsize


def start_record(folder: ModelFolder, names: Iterable[str]) -> dict[str, Any]:
    """Describe for start.json which tensors of a new model hold the weights of which other one."""
    digest = sha256(folder.path / "model.safetensors")
    return {"model": str(folder.path), "sha256": digest, "tensors": sorted(names)}
