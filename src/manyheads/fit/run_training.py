"""From a recipe to a trained model in a run folder."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from manyheads.errors import DataError, FolderError, InterruptedRunError, OutputError, UsageError
from manyheads.files import remove_unfinished
from manyheads.fit.observer import PrintObserver, RunObserver, SilentObserver, how_it_ended
from manyheads.fit.resumption import LAUNCH, launched_before, note_launch, store_recipe
from manyheads.fit.training_watch import TrainingWatch
from manyheads.measure.stored_model import measure as measure_model
from manyheads.predict.load import load
from manyheads.predict.task_pipeline import Pipeline, pipeline_of
from manyheads.project import folder
from manyheads.project.base_recipe import Recipe, read_recipe, write_recipe
from manyheads.project.capacity import check_memory
from manyheads.project.lock import LOCK, locked
from manyheads.project.paths import allow, find_recipe
from manyheads.streams import stream
from manyheads.train import checkpoint
from manyheads.train.checkpoint import checkpoints
from manyheads.train.device import limited_threads, multiplies_bf16, set_threads
from manyheads.train.distribute import RankTask
from manyheads.train.interrupt import stop_with_torchrun
from manyheads.train.layer_groups import freeze
from manyheads.train.loop import fit
from manyheads.train.model_wrapping import gathered, prepare
from manyheads.train.optim import optimizer
from manyheads.train.precision import CANDIDATES, fastest, measure
from manyheads.train.ranks import LostRankError, agreed, exchange, joined, on_first, rank_and_world
from manyheads.train.train_config import Precision
from manyheads.train.training_task import Task

# When a resumed run changes its recipe, or is of an older version.
REWRITTEN = ("recipe.toml", "preprocessing.json")


@stop_with_torchrun()
def train(
    recipe: str | Path | Recipe,
    *changes: str,
    out: str | Path | None = None,
    resume: bool = False,
    observer: RunObserver | None = None,
) -> dict[str, Any]:
    """Train a recipe in the folder `out`, and measure the stored model on the validation data.

    Started by torchrun, all processes train the one model together: docs/scale.md.

    Args:
        recipe: the name of a shipped recipe, the path of a TOML file, or a recipe that was read.
        changes: of keys of the file, such as "train.steps=200"; "train.muon=" takes one out.
        out: the run folder; new, unless resume. runs/NAME for a file NAME.toml if None.
        resume: go on from the newest checkpoint in `out`; the length, the validation and the log
            may change (`fit/resumption.py`).
        observer: called with the progress; prints a line an event to stderr if None.

    Returns:
        The evaluation of the stored model, as logged.

    Raises:
        NotFoundError: there is no such recipe, or no such data.
        UsageError: `out` is in use by another process, or is not empty, and resume was not asked
            for or it is no run; there are more processes than GPUs.
        OutOfMemoryError: memory does not suffice for the model or a batch.
        RecipeError: a mistake in the recipe; the run in `out` was started with another one.
        InterruptedRunError: stopped by Ctrl-C; the state is saved.
        TrainingError: another rank is gone, or has failed.
        OtherRankError: rank 0 reports the error, and this is another rank.
    """
    wrong = [each for each in changes if not isinstance(each, str)]
    if wrong:
        raise UsageError(f'{wrong[0]!r} is no change: give texts, such as "train.steps=200".')
    if not isinstance(out, str | Path | None):
        raise UsageError(f"`out` is {out!r}: give the path of a folder.")
    if isinstance(recipe, str | Path):
        path = find_recipe(str(recipe))
        recipe, out = read_recipe(path, changes), out or Path("runs") / path.stem
    elif not isinstance(recipe, Recipe) or not hasattr(recipe, "task"):
        raise UsageError(f"{recipe!r:.80} is no recipe: give a name, a path, or a recipe.")
    elif changes or out is None:
        raise UsageError("A recipe that was read already needs out=FOLDER, and takes no changes.")
    allow(*dict(recipe.data).values())
    with joined() as device, _sole(Path(out)), limited_threads(None), torch.random.fork_rng():
        heard = observer or PrintObserver() if rank_and_world()[0] == 0 else SilentObserver()
        return _train(recipe, Path(out), device, resume=resume, observer=heard)


@contextmanager
def _sole(out: Path) -> Iterator[None]:
    """Keep other runs out of the folder; rank 0 does so for all."""
    rank, world = rank_and_world()
    with ExitStack() as stack:
        with agreed():
            if rank == 0:
                stack.enter_context(locked(out))
        with agreed():
            if not (out / LOCK).exists() and world > 1 and not out.is_file():
                raise FolderError(
                    f"{out.absolute()} is not the folder that rank 0 has made: it must be on a "
                    "file system that all hosts share, under the same path."
                )
        yield


def _train(
    recipe: Recipe, out: Path, device: torch.device, *, resume: bool, observer: RunObserver
) -> dict[str, Any]:
    rank, world = rank_and_world()
    first = rank == 0
    with agreed():
        if first:
            folder.check_out(out, resume=resume or launched_before(out))
            note_launch(out)
    threads = set_threads(recipe.train.threads)
    observer.say(f"reading {recipe.data.train}")
    pipeline = pipeline_of(recipe)
    with agreed():
        task, config, write_inputs, environment = pipeline.prepare(recipe, out, observer.say)
        check_memory(lambda: pipeline.build(recipe, config))
        torch.manual_seed(stream(recipe.seed, "init"))
        # Before anything is written: what a recipe asks for may still be impossible.
        model = pipeline.build(recipe, config)
        freeze(model, recipe.train.freeze)
        optimizer(model, recipe.train)
        if world > 1:
            RankTask(task, world - 1, world).spare(0)  # the last rank has the fewest examples
        resolved = write_recipe(recipe, config)
    with agreed():
        _refuse_other_data(environment)
        if first:
            remove_unfinished(out)
            rewritten = store_recipe(out, resolved, recipe.train, observer.say)
            write_inputs(out)
            if rewritten:
                folder.refresh_manifest(out, [n for n in REWRITTEN if (out / n).exists()])
    with agreed():
        parts = folder.inputs(out, recipe)
        _refuse_other_inputs(out, parts)
        if not on_first(lambda: checkpoints(out / "state")):  # else the weights have learned since
            record = pipeline.initialize(model, recipe, out) or {}
            if record and first:
                folder.write_json(out / "start.json", record)
            for side, entry in record.items():
                observer.say(f"{side}: {len(entry['tensors'])} tensors from {entry['model']}")
    shared = f", {world} ranks ({recipe.train.parallel})" if world > 1 else ""
    parameters = sum(p.numel() for p in model.parameters())
    observer.say(f"{parameters:,} parameters, threads: {threads}{shared}")

    def keep(model: nn.Module) -> None:
        folder.write_weights(out, model, recipe.train.save_dtype)
        folder.write_manifest(out, recipe, precision)

    model.to(device, memory_format=recipe.train.memory_format)  # type: ignore[call-overload]
    precision = on_first(lambda: _precision(recipe, model, task, out, observer))
    here = {"threads": str(threads), "device": device.type, "precision": precision}
    settings = replace(recipe.train, precision=precision)
    watch = None
    if first:
        newest = checkpoint.newest(out / "state")
        watch = TrainingWatch(observer, recipe, task, out, step=newest.step if newest else 0)
        watch.examine(model)
        if world == 1 and not recipe.train.compile:
            watch.estimate(model, settings)
    wrapped = prepare(model, recipe.train)
    try:
        fit(
            wrapped,
            task,
            settings,
            out,
            seed=recipe.seed,
            environment=folder.versions() | here | {"ranks": str(world)} | environment | parts,
            save_best=keep,
            observer=watch or observer,
        )
    except InterruptedRunError as error:
        raise InterruptedRunError(
            f"{error} The state is saved in {out}. Go on with the same recipe and `resume=True`."
        ) from None
    except KeyboardInterrupt:
        raise InterruptedRunError(f"Stopped at once. {_saved(out)}") from None
    except OutputError as error:
        raise OutputError(f"{error} {_saved(out)}") from None
    except LostRankError as error:
        raise LostRankError(f"{error} {_saved(out)}") from error
    finally:
        if watch is not None:
            watch.draw(ended=True)
    if first:
        for line in how_it_ended(out, recipe.train.early_stop, recipe.train.steps):
            observer.say(line)
    with gathered(model):
        # There already, unless a finished run's file was damaged and it is resumed.
        if recipe.train.early_stop is None:
            on_first(lambda: keep(model))
    return on_first(lambda: _measure(recipe, out, pipeline))


def _measure(recipe: Recipe, out: Path, pipeline: Pipeline[Any, Any]) -> dict[str, Any]:
    shutil.rmtree(out / folder.CACHE, ignore_errors=True)
    predictor = load(out, threads=recipe.train.threads or None)
    request = pipeline.after_training(predictor)
    line = measure_model(predictor, request.model_copy(update={"limit": recipe.evaluate.limit}))
    (out / LAUNCH).unlink(missing_ok=True)  # from now on `resume` is asked for as always
    return line


def _refuse_other_data(environment: dict[str, str]) -> None:
    """Refuse to train where the ranks have read different data."""
    everyone = exchange(environment)
    if wrong := [rank for rank, each in enumerate(everyone) if each != everyone[0]]:
        raise DataError(
            f"Ranks {', '.join(map(str, wrong))} have read other data than rank 0: the files "
            "behind data.root must be the same on all hosts."
        )


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
    """Decide on "auto" by measurement; a resumed run keeps what it began with.

    Where bf16 would only be imitated, fp32 is faster and more exact.
    """
    wanted = recipe.train.precision
    before = checkpoint.newest(out / "state") if wanted == "auto" else None
    if before is not None and before.conditions.get("precision") in CANDIDATES:
        wanted = cast(Precision, before.conditions["precision"])
    if wanted == "bf16" and not multiplies_bf16(next(model.parameters()).device):
        observer.say("this machine does not multiply bf16: precision fp32")
        return "fp32"
    if wanted != "auto":
        return wanted
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
