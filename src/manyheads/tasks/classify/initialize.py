"""A pre-trained start for images: a classifier begins with another model's weights, a new head.

The other model is a classifier of other classes, the image tower of a matcher, or one that learned
to reconstruct images. This is fine-tuning; with `train.freeze = ["!head"]` it is a probe of what
the other has learned. At another image size positions and bias tables are interpolated
(models/resize.py).
"""

from collections.abc import Sequence, Set
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.errors import RecipeError
from manyheads.fit.inputs import start_record
from manyheads.models.resize import refit
from manyheads.nn.layers.head import heads
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.base_recipe import Recipe
from manyheads.project.folder import ModelFolder, read_json
from manyheads.project.paths import find_model
from manyheads.recipe_data.image_data import ImageRecipe
from manyheads.tasks.classify.recipe import ClassifyRecipe
from manyheads.train.model_tensors import tensors

SHOWN = 8


def differences(recipe: ImageRecipe, folder: ModelFolder) -> str:
    """Describe in what images are read otherwise than by the model that a recipe starts from."""
    _weights(folder, {})  # refuses a model of another task
    theirs, ours = asdict(folder.preprocessing()), asdict(recipe.image)
    changed = [
        f"image.{key} = {ours[key]!r} (there {theirs[key]!r})"
        for key in ours
        if ours[key] != theirs[key]
    ]
    preset = f"preset {recipe.model['preset']}"
    return f"{preset}, images are read as there" + "".join(f", but {each}" for each in changed)


def classes_of(folder: ModelFolder) -> list[str]:
    """Return the classes of a model, in the order of its head; none if it learned without."""
    return folder.labels() if (folder.path / "labels.json").exists() else []


def start_classifier(
    model: nn.Module, recipe: Recipe, start: str, classes: Sequence[str]
) -> dict[str, Any]:
    """Copy the weights of the model that a recipe starts from into a new classifier.

    Returns the entry of start.json.
    """
    folder = ModelFolder(find_model(start))
    trained = folder.model()
    theirs, ours = _weights(folder, tensors(trained)), tensors(model)
    if classes_of(folder) != list(classes):
        left_out = {*heads(trained), *heads(model)}
        theirs, ours = _without(theirs, left_out), _without(ours, left_out)
    config: Any = folder.recipe.config()  # or of the image encoder in it
    theirs = refit(getattr(config, "image", config), recipe.config(), theirs, folder.library)
    wrong = [f"- {name}: not there" for name in ours if name not in theirs]
    wrong += [f"- {name}: no place for it here" for name in theirs if name not in ours]
    wrong += [
        f"- {name}: {tuple(tensor.shape)} there, {tuple(ours[name].shape)} here"
        for name, tensor in theirs.items()
        if name in ours and tensor.shape != ours[name].shape
    ]
    if wrong:
        listed = "\n".join(wrong[:SHOWN] + ["- ..."] * (len(wrong) > SHOWN))
        raise RecipeError(
            f"start.model: the weights of {folder.path} do not fit model.preset = "
            f"{recipe.model['preset']!r}:\n{listed}\n"
            "Give both models the same preset and sizes; only the image size may differ."
        )
    with torch.no_grad():
        for name, tensor in theirs.items():
            ours[name].copy_(tensor)
    return {"encoder": start_record(folder, theirs)}


def _weights(folder: ModelFolder, stored: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return a model's tensors as a classifier names them."""
    weights = pipeline_of(folder.recipe).classifier_weights(stored)
    if weights is None:
        raise RecipeError(
            f"start.model: the task of {folder.path} is {folder.recipe.task!r}. A classifier "
            "starts from a model that learned from images: to classify them, to match them with "
            "texts, or to reconstruct them."
        )
    return weights


def _without(named: dict[str, Tensor], left_out: Set[str]) -> dict[str, Tensor]:
    return {n: tensor for n, tensor in named.items() if n.rpartition(".")[0] not in left_out}


def initialize(model: nn.Module, recipe: ClassifyRecipe, out: Path) -> dict[str, Any] | None:
    """Copy the weights of the model that [start] names."""
    if recipe.start is None:
        return None
    return start_classifier(model, recipe, recipe.start.model, read_json(out / "labels.json"))
