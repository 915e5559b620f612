"""From a recipe's names to data in memory: what a run needs before its model."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from manyheads.app.folder import write_inputs
from manyheads.app.recipe import ClassifyRecipe, Recipe, TranslateRecipe
from manyheads.app.sources import corpus_split, image_splits, refuse_test_splits
from manyheads.data.tokenizer import Tokenizer, Tokenizers
from manyheads.models.presets import Config
from manyheads.tasks.classify import ClassifyTask
from manyheads.tasks.metrics import TEXT_METRICS
from manyheads.tasks.translate import TranslateTask
from manyheads.train.task import Task


class Prepared(NamedTuple):
    """What a run is made of before its model."""

    task: Task[Any]
    config: Config
    write_inputs: Callable[[Path], None]  # the tokenizer, or preprocessing and labels
    data: str  # sha256 over what is trained and validated on


def prepare(recipe: Recipe, out: Path, say: Callable[[str], None]) -> Prepared:
    """Read a recipe's data; take the tokenizer from the run folder `out`, if it is there.

    Raises:
        NotFoundError: data are missing.
        DataError: data cannot be used.
        UsageError: data are a test split.
    """
    say(f"reading {recipe.data.train}")
    if isinstance(recipe, TranslateRecipe):
        return _prepare_text(recipe, out, say)
    return _prepare_images(recipe, say)


def _prepare_text(recipe: TranslateRecipe, out: Path, say: Callable[[str], None]) -> Prepared:
    for name in recipe.evaluate.metrics:
        TEXT_METRICS[name](["text"], ["text"])  # a missing package is found before training
    corpus, valid = corpus_split("train", recipe.data), corpus_split("valid", recipe.data)
    refuse_test_splits(corpus, valid)
    stored = out / "tokenizer.model"
    if stored.exists():
        tokenizer = Tokenizer(stored.read_bytes())
    else:
        say(f"learning a vocabulary from {len(corpus):,} pairs")
        tokenizer = Tokenizer.train([*corpus.source, *corpus.target], recipe.tokenizer)
    task = TranslateTask(
        corpus,
        valid,
        Tokenizers(tokenizer, tokenizer),
        recipe.train,
        recipe.evaluate,
        seed=recipe.seed,
    )
    if task.left_out:
        say(
            f"left out {task.left_out:,} of {len(corpus):,} pairs, longer than train.max_length = "
            f"{recipe.train.max_length} tokens"
        )
    config = recipe.config(vocabulary=len(tokenizer))
    return Prepared(
        task,
        config,
        lambda folder: write_inputs(folder, recipe, tokenizer, None),
        _digest(*corpus.hashes, *valid.hashes),
    )


def _prepare_images(recipe: ClassifyRecipe, say: Callable[[str], None]) -> Prepared:
    images, valid = image_splits(recipe.data)
    refuse_test_splits(images, valid)
    say(f"{len(images):,} pictures of {len(images.classes)} classes")
    task = ClassifyTask(images, valid, recipe.image, recipe.augment, recipe.train, seed=recipe.seed)
    config = recipe.config(classes=len(images.classes))
    return Prepared(
        task,
        config,
        lambda folder: write_inputs(folder, recipe, None, images.classes),
        _digest(*images.hashes, *valid.hashes),
    )


def _digest(*hashes: str) -> str:
    return hashlib.sha256("".join(hashes).encode()).hexdigest()
