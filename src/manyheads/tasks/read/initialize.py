"""Starting from trained weights."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from manyheads.errors import RecipeError
from manyheads.fit.inputs import start_record
from manyheads.tasks.read.preparation import start_folder
from manyheads.tasks.read.recipe import ReadRecipe
from manyheads.train.model_tensors import tensors


def initialize(model: nn.Module, recipe: ReadRecipe, out: Path) -> dict[str, Any] | None:
    """Copy the weights of the reader that [start] names; new letters keep fresh ones."""
    if recipe.start is None:
        return None
    folder = start_folder(recipe.start)
    theirs, ours = tensors(folder.model()), tensors(model)
    rows = len(folder.characters())
    for name, tensor in ours.items():
        place = tensor[:rows] if name.startswith("output.") else tensor
        if name not in theirs or theirs[name].shape != place.shape:
            raise RecipeError(
                f"start.model: the weights of {folder.path} do not fit model.preset = "
                f"{recipe.model['preset']!r} ({name}). Give both readers the same [model] and "
                "image.height."
            )
        with torch.no_grad():
            place.copy_(theirs[name])
    return {"reader": start_record(folder, theirs)}
