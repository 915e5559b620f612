"""From a recipe to a trained model in a run folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from manyheads.app.card import write_card
from manyheads.app.evaluate import evaluate
from manyheads.app.folder import (
    ModelFolder,
    versions,
    write_atomically,
    write_inputs,
    write_manifest,
    write_weights,
)
from manyheads.app.predict import load
from manyheads.app.recipe import ClassifyRecipe, Recipe, TranslateRecipe, write_recipe
from manyheads.app.sources import corpus_split, image_splits, refuse_test_splits
from manyheads.data.tokenizer import Tokenizer
from manyheads.errors import InterruptedRunError, RecipeError, UsageError
from manyheads.models.build import build
from manyheads.models.presets import Config
from manyheads.streams import stream
from manyheads.tasks.classify import ClassifyTask
from manyheads.tasks.translate import TranslateTask
from manyheads.train.device import best_device, set_threads
from manyheads.train.loop import Observer, fit
from manyheads.train.task import Task


class RunObserver(Observer, Protocol):
    """Whoever watches a whole run."""

    def say(self, message: str) -> None:
        """Hear of what happens before and after training."""


def train(recipe: Recipe, out: Path, *, resume: bool, observer: RunObserver) -> dict[str, Any]:
    """Train a recipe in the folder `out`, and measure the stored model on the validation data.

    Args:
        recipe: what to train.
        out: the run folder; new, unless resume.
        resume: go on from the newest checkpoint in `out`.
        observer: hears of progress.

    Returns:
        The evaluation of the stored model, as logged.

    Raises:
        UsageError: `out` is in use and resume was not asked for.
        RecipeError: the run in `out` was started with another recipe.
        InterruptedRunError: stopped by Ctrl-C; the state is saved.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file. Choose a folder with --out.")
    if out.exists() and any(out.iterdir()) and not resume:
        raise UsageError(
            f"{out} is not empty. Go on with the run in it with --resume, or choose another folder "
            "with --out."
        )
    threads = set_threads(recipe.train.threads)
    task, config, inputs = _prepare(recipe, out, observer)
    out.mkdir(parents=True, exist_ok=True)
    _write_recipe(out, write_recipe(recipe, config))
    inputs(out)
    torch.manual_seed(stream(recipe.seed, "init"))
    model = build(config)
    observer.say(f"{sum(p.numel() for p in model.parameters()):,} parameters, {threads} threads")
    device = best_device()

    def keep(model: nn.Module) -> None:
        write_weights(out, model, recipe.train.store)
        write_manifest(out, recipe)

    try:
        fit(
            model.to(device),
            task,
            recipe.train,
            out,
            seed=recipe.seed,
            conditions=versions()
            | {"threads": str(threads), "device": device.type, "precision": recipe.train.precision},
            keep=keep,
            observer=observer,
        )
    except InterruptedRunError as error:
        raise InterruptedRunError(
            f"{error} The state is saved in {out}. Go on with the same command and --resume."
        ) from None
    if recipe.train.early_stop is None:
        keep(model)  # there already, unless a finished run's file was damaged and it is resumed
    line = evaluate(load(out))
    write_card(ModelFolder(out))
    return line


def _prepare(
    recipe: Recipe, out: Path, observer: RunObserver
) -> tuple[Task[Any], Config, Callable[[Path], None]]:
    """Read the data; return the task, the model's Config, and what writes the run's inputs."""
    observer.say(f"reading {recipe.data.train}")
    if isinstance(recipe, TranslateRecipe):
        return _prepare_text(recipe, out, observer)
    return _prepare_images(recipe, observer)


def _prepare_text(
    recipe: TranslateRecipe, out: Path, observer: RunObserver
) -> tuple[Task[Any], Config, Callable[[Path], None]]:
    corpus, valid = corpus_split("train", recipe.data), corpus_split("valid", recipe.data)
    refuse_test_splits(corpus, valid)
    stored = out / "tokenizer.model"
    if stored.exists():
        tokenizer = Tokenizer(stored.read_bytes())
    else:
        observer.say(f"learning a vocabulary from {len(corpus):,} pairs")
        tokenizer = Tokenizer.train([*corpus.source, *corpus.target], recipe.tokenizer)
    task = TranslateTask(corpus, valid, tokenizer, recipe.train, recipe.evaluate, seed=recipe.seed)
    if task.left_out:
        observer.say(
            f"left out {task.left_out:,} of {len(corpus):,} pairs, longer than train.max_length = "
            f"{recipe.train.max_length} tokens"
        )
    config = recipe.config(vocabulary=len(tokenizer))
    return task, config, lambda folder: write_inputs(folder, recipe, tokenizer, None)


def _prepare_images(
    recipe: ClassifyRecipe, observer: RunObserver
) -> tuple[Task[Any], Config, Callable[[Path], None]]:
    images, valid = image_splits(recipe.data)
    refuse_test_splits(images, valid)
    observer.say(f"{len(images):,} pictures of {len(images.classes)} classes")
    task = ClassifyTask(images, valid, recipe.image, recipe.augment, recipe.train, seed=recipe.seed)
    config = recipe.config(classes=len(images.classes))
    return task, config, lambda folder: write_inputs(folder, recipe, None, images.classes)


def _write_recipe(out: Path, text: str) -> None:
    """Write the resolved recipe, or check that a resumed run has the same."""
    path = out / "recipe.toml"
    if not path.exists():
        write_atomically(path, text.encode())
        return
    stored = path.read_text(encoding="utf-8")
    if stored != text:
        changed = [f"- {line}" for line in stored.splitlines() if line not in text.splitlines()]
        changed += [f"+ {line}" for line in text.splitlines() if line not in stored.splitlines()]
        raise RecipeError(
            f"The run in {out} was started with another recipe:\n" + "\n".join(changed) + "\n"
            "Resume it with the same recipe, or start another run with --out."
        )
