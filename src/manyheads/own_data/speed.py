"""Measure how fast a recipe trains on this machine: a few real steps of its real model.

A recipe is first drafted to be timed, then with the steps that the minutes allow.
"""

import math
import shlex
from dataclasses import dataclass, replace
from importlib.resources import files as resources
from pathlib import Path
from string import Formatter
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from manyheads.fit.observer import SilentObserver
from manyheads.fit.pace import rehearsed
from manyheads.own_data.prepared import recipe_path
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.base_recipe import read_recipe
from manyheads.project.capacity import check_memory
from manyheads.streams import stream
from manyheads.train.device import best_device, limited_threads, set_threads
from manyheads.train.precision import fastest
from manyheads.train.precision import measure as time_precisions

VALIDATIONS = 10
FULL = 0.9  # of the minutes: the rest is for reading, checkpoints and the last measurement


class Speed(NamedTuple):
    """What was measured."""

    step: float  # seconds
    validation: float  # seconds, of all validation data
    steps_per_epoch: int
    units: float  # tokens or images a second
    parameters: int
    device: str
    precision: str  # the faster one


@dataclass(kw_only=True)
class Draft:
    """What every recipe is made of; a template beside this file says the rest."""

    data: Any  # the examples; `parts` has them by name
    out: Path
    speed: Speed | None = None
    steps: int = 1000
    every: int = 100  # steps between validations
    minutes: float = math.nan

    @property
    def duration(self) -> str:
        """The minutes for people: "45 seconds", "120 minutes"."""
        few = self.minutes < 2
        return f"{60 * self.minutes:.0f} seconds" if few else f"{self.minutes:.0f} minutes"

    def fill(self, template: str, **values: Any) -> list[str]:
        """Return the lines of a template beside this file, its {names} filled.

        A line "@name ..." stands only where this value is true, "@!name ..." where it is not.
        `size[name]` is the number of examples of a part.
        """
        values |= {"data": self.data, "draft": self, "speed": self.speed}
        values |= {"size": {name: len(own) for name, own in self.data.parts.items()}}
        values |= {"times": self.steps // self.every, "warmup": max(1, self.steps // 10)}
        values |= {"precision": self.speed.precision if self.speed else "auto"}
        values |= {"path": shlex.quote(str(recipe_path(self.out)))}
        lines = []
        for line in resources(__package__).joinpath(template).read_text("utf-8").splitlines():
            condition, _, rest = line.partition(" ") if line[:1] == "@" else ("", "", line)
            name = condition.lstrip("@!")
            if not name or bool(Formatter().get_field(name, (), values)[0]) != ("!" in condition):
                lines.append(rest.format(**values))
        return lines


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
        folder, run = Path(name), Path(name, "run")
        run.mkdir()
        for file, content in files.items():
            (folder / file).write_text(content, encoding="utf-8", newline="")
        (folder / "recipe.toml").write_text(recipe.replace("{root}", name), encoding="utf-8")
        parsed = read_recipe(folder / "recipe.toml")
        set_threads(parsed.train.threads)
        pipeline = pipeline_of(parsed)
        task, config, write_inputs, _ = pipeline.prepare(parsed, run, SilentObserver().say)
        check_memory(lambda: pipeline.build(parsed, config))
        torch.manual_seed(stream(parsed.seed, "init"))
        model = pipeline.build(parsed, config)
        write_inputs(run)
        pipeline.initialize(model, parsed, run)
        model.to(device)
        settings = replace(parsed.train, precision=fastest(time_precisions(model, task)))
        pace = rehearsed(model, task, settings, parsed.seed)
    return Speed(
        step=pace.step,
        validation=pace.validation,
        steps_per_epoch=len(task.plan(0)),
        units=pace.units,
        parameters=sum(each.numel() for each in model.parameters()),
        device=device.type,
        precision=settings.precision,
    )
