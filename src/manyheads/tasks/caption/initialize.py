"""Continuing a trained captioner."""

from pathlib import Path
from typing import Any

from torch import nn

from manyheads.fit.inputs import start_record
from manyheads.project.folder import ModelFolder
from manyheads.project.paths import find_model
from manyheads.tasks.caption.recipe import CaptionRecipe
from manyheads.train.model_tensors import restore, tensors


def initialize(model: nn.Module, recipe: CaptionRecipe, out: Path) -> dict[str, Any] | None:
    """Copy all weights of the captioner that [start] names."""
    if recipe.start is None:
        return None
    folder = ModelFolder(find_model(recipe.start.model))
    theirs = tensors(folder.model())
    restore(model, theirs, folder.path)
    return {"captioner": start_record(folder, theirs)}
