"""The tasks: one dict from a recipe's `task` to the pipeline that does it; and presets by name.

A pipeline is imported when a recipe first names its task, so that translating imports nothing that
classifies. A task from outside the package is added with `register_task`.
"""

from importlib import import_module
from typing import Any

from manyheads.app.project.plugins import load_entry_points
from manyheads.errors import RecipeError, UsageError, nearest
from manyheads.models.config import ModelConfig
from manyheads.models.presets import preset

# Adding a task to the package is a file in app/pipelines/ and a line here.
TASKS: dict[str, Any] = {
    "translate": "manyheads.app.pipelines.translate",
    "classify": "manyheads.app.pipelines.classify",
    "reconstruct": "manyheads.app.pipelines.reconstruct",
    "generate": "manyheads.app.pipelines.generate",
    "fill": "manyheads.app.pipelines.fill",
    "tag": "manyheads.app.pipelines.tag",
}


def find_task(task: object) -> Any:
    """Return the pipeline of a task (app/pipeline.py)."""
    name = task if isinstance(task, str) else ""
    if name not in TASKS:
        load_entry_points()
    if name not in TASKS:
        hint = nearest(name, TASKS) if name else "; "
        raise RecipeError(f"task is {task!r}{hint}Allowed: {', '.join(map(repr, TASKS))}.")
    found = TASKS[name]
    if isinstance(found, str):
        TASKS[name] = found = import_module(found).PIPELINE
    return found


def register_task(pipeline: Any) -> None:
    """Add a task, given as an instance of a `Pipeline`: from then on recipes may name it.

    Raises:
        UsageError: the task exists already, or what was given is no pipeline.
    """
    lacks = [
        name for name in ("task", "recipe", "predictor", "prepare") if not hasattr(pipeline, name)
    ]
    if lacks:
        raise UsageError(
            f"{pipeline!r} is no pipeline: it lacks {', '.join(lacks)}. Give an instance of a "
            "class that inherits manyheads.Pipeline."
        )
    if TASKS.get(pipeline.task, pipeline) is not pipeline:
        raise UsageError(f"There is a task {pipeline.task!r} already: choose another name.")
    TASKS[pipeline.task] = pipeline


def find_preset(name: str) -> ModelConfig:
    """Return a preset, also one of an installed plugin.

    Raises:
        UsageError: no such preset.
    """
    try:
        return preset(name)
    except UsageError:
        load_entry_points()
        return preset(name)
