"""From a recipe to a trained model in a run folder."""

import os
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import tomli_w
import torch
from torch import nn

from manyheads.app.evaluate.evaluate import measure as measure_model
from manyheads.app.load import load
from manyheads.app.pipeline import pipeline_of
from manyheads.app.project.capacity import check_memory
from manyheads.app.project.folder import (
    CACHE,
    check_out,
    inputs,
    refresh_manifest,
    versions,
    write_json,
    write_manifest,
    write_weights,
)
from manyheads.app.project.lock import locked
from manyheads.app.project.migrate import migrate
from manyheads.app.project.paths import find_recipe
from manyheads.app.project.recipe import Recipe, differences, read_recipe, write_recipe
from manyheads.app.train.observer import PrintObserver, RunObserver
from manyheads.errors import (
    FolderError,
    InterruptedRunError,
    OutputError,
    RecipeError,
    UsageError,
)
from manyheads.files import remove_unfinished, write_text
from manyheads.streams import stream
from manyheads.train import checkpoint
from manyheads.train.checkpoint import checkpoints
from manyheads.train.config import Precision
from manyheads.train.device import best_device, limited_threads, set_threads
from manyheads.train.distribute import rank_and_world
from manyheads.train.layer_groups import freeze
from manyheads.train.loop import fit
from manyheads.train.optim import optimizer
from manyheads.train.precision import CANDIDATES, fastest, measure
from manyheads.train.task import Task

REWRITTEN = ("recipe.toml", "preprocessing.json")  # when a run of an older version is resumed


def train(
    recipe: str | Path | Recipe,
    *changes: str,
    out: str | Path | None = None,
    resume: bool = False,
    observer: RunObserver | None = None,
) -> dict[str, Any]:
    """Train a recipe in the folder `out`, and measure the stored model on the validation data.

    Args:
        recipe: the name of a shipped recipe, the path of a TOML file, or a recipe that was read.
        changes: of keys of the file, such as "train.steps=200"; "train.muon=" takes one out.
        out: the run folder; new, unless resume. runs/NAME for a file NAME.toml if None.
        resume: go on from the newest checkpoint in `out`.
        observer: hears of progress; prints a line an event to stderr if None.

    Returns:
        The evaluation of the stored model, as logged.

    Raises:
        NotFoundError: there is no such recipe, or no such data.
        UsageError: `out` is in use by another process, or is not empty, and resume was not asked
            for or it is no run; several processes were started.
        OutOfMemoryError: memory does not suffice for the model or a batch.
        RecipeError: a mistake in the recipe; the run in `out` was started with another one.
        InterruptedRunError: stopped by Ctrl-C; the state is saved.
    """
    wrong = [each for each in changes if not isinstance(each, str)]
    if wrong:
        raise UsageError(f'{wrong[0]!r} is no change: give texts, such as "train.steps=200".')
    if not isinstance(out, str | Path | None):
        raise UsageError(f"`out` is {out!r}: give the path of a folder.")
    if isinstance(recipe, str | Path):
        path = find_recipe(str(recipe))
        recipe, out = read_recipe(path, changes), out or Path("runs") / path.stem
    elif not isinstance(recipe, Recipe):
        raise UsageError(f"{recipe!r:.80} is no recipe: give a name, a path, or a recipe.")
    elif changes or out is None:
        raise UsageError("A recipe that was read already needs out=FOLDER, and takes no changes.")
    if not hasattr(recipe, "task"):
        raise UsageError(f"{recipe!r:.80} is no recipe: give a name, a path, or one that was read.")
    world = os.environ.get("WORLD_SIZE", "")
    if world.isdecimal() and int(world) > 1 and rank_and_world()[1] == 1:
        raise UsageError(
            f"WORLD_SIZE is {world}, but manyheads.train is one process: each of {world} would "
            f"train the whole model into {out}. Start it once; for several processes, a program of "
            "your own makes the process group and calls `manyheads.train.fit`."
        )
    with locked(Path(out)), limited_threads(None), torch.random.fork_rng():
        return _train(recipe, Path(out), resume=resume, observer=observer or PrintObserver())


def _train(recipe: Recipe, out: Path, *, resume: bool, observer: RunObserver) -> dict[str, Any]:
    check_out(out, resume=resume)
    threads = set_threads(recipe.train.threads)
    observer.say(f"reading {recipe.data.train}")
    pipeline = pipeline_of(recipe)
    task, config, write_inputs, found = pipeline.prepare(recipe, out, observer.say)
    check_memory(lambda: pipeline.build(recipe, config))
    torch.manual_seed(stream(recipe.seed, "init"))
    # Before anything is written: what a recipe asks for may still be impossible.
    model = pipeline.build(recipe, config)
    freeze(model, recipe.train.freeze)
    optimizer(model, recipe.train)
    resolved = write_recipe(recipe, config)
    remove_unfinished(out)
    migrated = _write_recipe(out, resolved)
    write_inputs(out)
    if migrated:
        refresh_manifest(out, [n for n in REWRITTEN if (out / n).exists()])
    parts = inputs(out, recipe)
    _refuse_other_inputs(out, parts)
    if not checkpoints(out / "state"):  # else resumed: the weights have learned since
        record = pipeline.initialize(model, recipe, out) or {}
        if record:
            write_json(out / "start.json", record)
        for side, entry in record.items():
            observer.say(f"{side}: {len(entry['tensors'])} tensors from {entry['model']}")
    observer.say(f"{sum(p.numel() for p in model.parameters()):,} parameters, threads: {threads}")
    device = best_device()

    def keep(model: nn.Module) -> None:
        write_weights(out, model, recipe.train.save_dtype)
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
            environment=versions() | here | found | parts,
            save_best=keep,
            observer=observer,
        )
    except InterruptedRunError as error:
        raise InterruptedRunError(
            f"{error} The state is saved in {out}. Go on with the same recipe and `resume=True`."
        ) from None
    except KeyboardInterrupt:
        raise InterruptedRunError(f"Stopped at once. {_saved(out)}") from None
    except OutputError as error:
        raise OutputError(f"{error} {_saved(out)}") from None
    shutil.rmtree(out / CACHE, ignore_errors=True)
    if recipe.train.early_stop is None:
        keep(model)  # there already, unless a finished run's file was damaged and it is resumed
    predictor = load(out, threads=recipe.train.threads or None)
    return measure_model(predictor, pipeline.after_training(predictor))


def _saved(out: Path) -> str:
    """Say from where a run can go on that could not be saved when it ended."""
    before = checkpoint.newest(out / "state")
    if before is None:
        return "No step is saved yet."
    return (
        f"The last saved step is {before.step}: go on from there with the same recipe and "
        "`resume=True`."
    )


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


def _refuse_other_inputs(out: Path, parts: dict[str, str]) -> None:
    """Refuse to resume with another tokenizer than the weights learned with."""
    before = checkpoint.newest(out / "state")
    learned = parts if before is None else parts | before.conditions
    if other := [name for name in parts if learned[name] != parts[name]]:
        raise FolderError(
            f"{out / other[0]} is not the file that the run began with: its ids would mean "
            "something else. Put that file back, or start another run with another `out`."
        )


def _write_recipe(out: Path, text: str) -> bool:
    """Write the resolved recipe, or check that a resumed run has the same.

    Returns whether the run was begun by an older version, whose keys were renamed.
    """
    path = out / "recipe.toml"
    if not path.exists():
        write_text(path, text)
        return False
    stored = path.read_text(encoding="utf-8")
    before = tomllib.loads(stored)
    if migrated := bool(migrate(before)):
        stored = tomli_w.dumps(before)
    if tomllib.loads(stored) != tomllib.loads(text):
        changed = "\n".join(differences(stored, text))
        raise RecipeError(
            f"The run in {out} was started with another recipe:\n{changed}\n"
            "Resume it with the same recipe, or start another run with another `out`."
        )
    if migrated:
        write_text(path, stored)
    return migrated
