"""Measure how fast a recipe trains on this machine: a few real steps of its real model."""

import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from manyheads.fit.observer import SilentObserver
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.base_recipe import read_recipe
from manyheads.project.capacity import check_memory
from manyheads.streams import stream
from manyheads.train.device import best_device, limited_threads, set_threads
from manyheads.train.loop import update
from manyheads.train.optim import optimizer
from manyheads.train.precision import fastest
from manyheads.train.precision import measure as time_precisions

SECONDS = 8.0
WARM = 2  # steps that are not counted


class Speed(NamedTuple):
    """What was measured."""

    step: float  # seconds
    validation: float  # seconds, of all validation data
    steps_per_epoch: int
    units: float  # tokens or images a second
    parameters: int
    device: str
    precision: str  # the faster one


def measure(recipe: str, files: dict[str, str], hardware: str | None) -> Speed | None:
    """Train a recipe for some seconds in a folder that is gone afterwards.

    Args:
        recipe: its text, whose data.root is `{root}`.
        files: of the data folder.
        hardware: cpu or gpu; None: the best there is.

    Returns:
        None if a GPU was asked for and this machine has none.

    Raises:
        DataError: the data do not suffice, for a vocabulary for example.
        RecipeError: the recipe has a mistake.
    """
    device = torch.device("cpu") if hardware == "cpu" else best_device()
    if hardware == "gpu" and device.type == "cpu":
        return None
    with TemporaryDirectory() as name, limited_threads(None), torch.random.fork_rng():
        folder = Path(name)
        for file, content in files.items():
            (folder / file).write_text(content, encoding="utf-8", newline="")
        (folder / "recipe.toml").write_text(recipe.replace("{root}", name), encoding="utf-8")
        return _measure(folder, device)


def _measure(folder: Path, device: torch.device) -> Speed:
    parsed = read_recipe(folder / "recipe.toml")
    set_threads(parsed.train.threads)
    pipeline, run = pipeline_of(parsed), folder / "run"
    run.mkdir()
    task, config, write_inputs, _ = pipeline.prepare(parsed, run, SilentObserver().say)
    check_memory(lambda: pipeline.build(parsed, config))
    torch.manual_seed(stream(parsed.seed, "init"))
    model = pipeline.build(parsed, config)
    write_inputs(run)
    pipeline.initialize(model, parsed, run)
    model.to(device)
    steps, plan = 0, task.plan(0)
    settings = replace(parsed.train, precision=fastest(time_precisions(model, task)))
    learn: Any = optimizer(model, settings)
    units, started = 0, time.perf_counter()
    batches = (batch for _ in range(100) for batch in task.load(0, plan))
    for batch in batches:
        if steps == WARM:
            units, started = 0, time.perf_counter()
        units += update(model, task, [batch], settings, learn, steps + 1, device).units
        steps += 1
        if steps > WARM and time.perf_counter() - started > SECONDS:
            break
    spent = time.perf_counter() - started
    counted = max(1, steps - WARM)
    return Speed(
        step=spent / counted,
        validation=_validation(task, model) / (1 if parsed.train.validate_first else 2),
        steps_per_epoch=len(plan),
        units=units / spent,
        parameters=sum(each.numel() for each in model.parameters()),
        device=device.type,
        precision=settings.precision,
    )


def _validation(task: Any, model: torch.nn.Module) -> float:
    """Time a validation. A model that has learned little writes twice as long as later."""
    model.eval()
    started = time.perf_counter()
    with torch.inference_mode():
        task.evaluate(model)
    return time.perf_counter() - started
