"""From a recipe to a trained model in a run folder."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from torch import nn

from manyheads.app.evaluate import evaluate
from manyheads.app.folder import (
    CACHE,
    check_out,
    remove_unfinished,
    versions,
    write_atomically,
    write_manifest,
    write_weights,
)
from manyheads.app.model import build_model
from manyheads.app.predict import load
from manyheads.app.prepare import prepare
from manyheads.app.recipe import Recipe, differences, write_recipe
from manyheads.app.start import begin
from manyheads.app.translations import after_training
from manyheads.errors import InterruptedRunError, RecipeError
from manyheads.streams import stream
from manyheads.train import checkpoint
from manyheads.train.config import Precision
from manyheads.train.depth import freeze
from manyheads.train.device import best_device, set_threads
from manyheads.train.loop import Observer, fit
from manyheads.train.optim import optimizer
from manyheads.train.precision import CANDIDATES, fastest, measure
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
        UsageError: `out` is in use, and resume was not asked for or it is no run.
        RecipeError: the run in `out` was started with another recipe.
        InterruptedRunError: stopped by Ctrl-C; the state is saved.
    """
    check_out(out, resume=resume)
    threads = set_threads(recipe.train.threads)
    task, config, inputs, found = prepare(recipe, out, observer.say)
    torch.manual_seed(stream(recipe.seed, "init"))
    # Before anything is written: what a recipe asks for may still be impossible.
    model = build_model(recipe, config)
    freeze(model, recipe.train.freeze)
    optimizer(model, recipe.train)
    out.mkdir(parents=True, exist_ok=True)
    remove_unfinished(out)
    _write_recipe(out, write_recipe(recipe, config))
    inputs(out)
    begin(model, recipe, out, observer.say)
    observer.say(f"{sum(p.numel() for p in model.parameters()):,} parameters, threads: {threads}")
    device = best_device()

    def keep(model: nn.Module) -> None:
        write_weights(out, model, recipe.train.store)
        write_manifest(out, recipe, precision)

    model.to(device, memory_format=recipe.train.memory_format)  # type: ignore[call-overload]
    precision = _precision(recipe, model, task, out, observer)
    here = {"threads": str(threads), "device": device.type, "precision": precision}
    try:
        fit(
            model,
            task,
            replace(recipe.train, precision=precision),
            out,
            seed=recipe.seed,
            conditions=versions() | here | found,
            keep=keep,
            observer=observer,
        )
    except InterruptedRunError as error:
        raise InterruptedRunError(
            f"{error} The state is saved in {out}. Go on with the same command and --resume."
        ) from None
    shutil.rmtree(out / CACHE, ignore_errors=True)
    if recipe.train.early_stop is None:
        keep(model)  # there already, unless a finished run's file was damaged and it is resumed
    predictor = load(out)
    return evaluate(predictor, report=after_training(predictor))


def _precision(
    recipe: Recipe, model: nn.Module, task: Task[Any], out: Path, observer: RunObserver
) -> Precision:
    """Decide on "auto" by measurement; a resumed run keeps what it began with."""
    if recipe.train.precision != "auto":
        return recipe.train.precision
    before = checkpoint.newest(out / "state")
    if before is not None and before.conditions.get("precision") in CANDIDATES:
        return cast(Precision, before.conditions["precision"])
    seconds = measure(model, task)
    chosen = fastest(seconds)
    times = ", ".join(f"{name} {time:.3g} s" for name, time in seconds.items())
    observer.say(f"a batch takes {times}: precision {chosen}")
    return chosen


def _write_recipe(out: Path, text: str) -> None:
    """Write the resolved recipe, or check that a resumed run has the same."""
    path = out / "recipe.toml"
    if not path.exists():
        write_atomically(path, text.encode())
        return
    stored = path.read_text(encoding="utf-8")
    if stored != text:
        changed = "\n".join(differences(stored, text))
        raise RecipeError(
            f"The run in {out} was started with another recipe:\n{changed}\n"
            "Resume it with the same recipe, or start another run with --out."
        )
