"""A task's parts lie in its folder, and are imported when they are needed."""

import inspect
import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from manyheads.predict.task_pipeline import Pipeline
from manyheads.project.registry import TASKS, find_task

PARTS = {
    "preparation": ("prepare", "validation_images"),
    "initialize": ("initialize",),
    "evaluation": ("evaluate", "parity", "after_training"),
    "look": ("look", "shapes"),
    "samples": ("samples",),
}
OWN = [task for task in TASKS if find_task(task).home]


@pytest.mark.parametrize("task", OWN)
def test_parts_are_called_as_the_interface_says(task: str) -> None:
    """The same parameters in the same order, but for `self`."""
    pipeline = find_task(task)
    assert pipeline.home == f"manyheads.tasks.{task}"
    for role, functions in PARTS.items():
        if find_spec(f"{pipeline.home}.{role}") is None:
            continue
        module = import_module(f"{pipeline.home}.{role}")
        found = [name for name in functions if hasattr(module, name)]
        assert found or role == "look", role
        for name in found:
            _, *wanted = inspect.signature(getattr(Pipeline, name)).parameters
            assert [*inspect.signature(getattr(module, name)).parameters] == wanted


@pytest.mark.parametrize("task", TASKS)
def test_what_can_be_looked_at_is_said(task: str) -> None:
    """A page asks before it shows anything, without importing the part."""
    pipeline = find_task(task)
    own = type(pipeline).look is not Pipeline.look
    assert pipeline.looks is (own or pipeline.part("look", "look") is not None)


def test_a_task_prepares() -> None:
    """One that neither has the method nor a folder cannot be made."""
    with pytest.raises(TypeError, match="Silent lacks the method prepare"):
        type("Silent", (Pipeline,), {"task": "silent"})()


def test_most_tasks_are_made_of_parts() -> None:
    """The three that have one output per token share a class in place of them."""
    assert set(TASKS) - set(OWN) == {"generate", "fill", "tag"}


USES = {
    "translate": "manyheads.load('multi30k-en-de')('A man is riding a bicycle.')",
    "classify": "manyheads.load('digits')(Image.new('L', (8, 8)))",
    "caption": "manyheads.load('emoji-caption')(Image.new('RGB', (64, 64)))",
}


@pytest.mark.parametrize("task", USES)
def test_an_answer_imports_its_own_task_alone(task: str) -> None:
    """In a fresh process; a translation imports nothing of images, either."""
    program = f"""
import json, sys, warnings
warnings.simplefilter("ignore")
import manyheads
if {task != "translate"}:
    from PIL import Image
{USES[task]}
own = (name for name in sys.modules if name.startswith("manyheads."))
print(json.dumps([name for name in own if not hasattr(sys.modules[name], "__path__")]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    modules = json.loads(done.stdout)
    tasks = {name.split(".")[2] for name in modules if name.startswith("manyheads.tasks.")}
    assert tasks == {task}
    assert {"doctor", "looking", "tokenwise"}.isdisjoint(name.split(".")[1] for name in modules)
    if task == "translate":
        assert len(modules) <= 150
        assert [name for name in modules if ".images." in name or ".vision." in name] == []
