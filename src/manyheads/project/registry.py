"""The tasks: one dict from a recipe's `task` to the pipeline that does it.

A pipeline is imported when a recipe first names its task, so that translating imports nothing that
classifies. A task from outside the package is added with `register_task`.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from manyheads.errors import RecipeError, nearest
from manyheads.models.presets import PRESETS
from manyheads.project.plugins import load_entry_points
from manyheads.registration import register

# Adding a task to the package is a folder in tasks/ and a line here.
TASKS: dict[str, Any] = {
    "translate": "manyheads.tasks.translate.pipeline",
    "classify": "manyheads.tasks.classify.pipeline",
    "reconstruct": "manyheads.tasks.reconstruct.pipeline",
    "generate": "manyheads.tasks.generate.pipeline",
    "fill": "manyheads.tasks.fill.pipeline",
    "tag": "manyheads.tasks.tag.pipeline",
    "caption": "manyheads.tasks.caption.pipeline",
    "match": "manyheads.tasks.match.pipeline",
    "read": "manyheads.tasks.read.pipeline",
    "embed": "manyheads.tasks.embed.pipeline",
}


def import_installed(table: Mapping[str, Any]) -> None:
    """Import the plugins of installed packages if a user's recipe names what is not known.

    A model folder never causes an import: it is answered with the plugin that is missing.
    """
    task, model = table.get("task"), table.get("model")
    preset = model.get("preset") if isinstance(model, Mapping) else None
    unknown = isinstance(task, str) and task not in TASKS
    if isinstance(preset, str) and not {preset, preset.partition("/")[0]} & PRESETS.keys():
        unknown = True
    if unknown:
        load_entry_points()


def find_task(task: object) -> Any:
    """Return the pipeline of a task (predict/task_pipeline.py)."""
    name = task if isinstance(task, str) else ""
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
    lacks = ["being an instance"] * isinstance(pipeline, type)
    for name in ("task", "recipe", "predictor", "prepare"):
        if not hasattr(pipeline, name):
            lacks.append(name)
        elif name in ("recipe", "predictor") and not isinstance(getattr(pipeline, name), type):
            lacks.append(f"a class as {name}")
    lacks += ["a tuple of names as files"] * isinstance(getattr(pipeline, "files", ()), str)
    wanted = "Give an instance of a class that inherits manyheads.Pipeline."
    register(TASKS, "a task", getattr(pipeline, "task", "?"), pipeline, wanted, lacks)
