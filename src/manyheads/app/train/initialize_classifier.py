"""A pre-trained start for images: a classifier begins with another model's weights, a new head.

The other model is a classifier of other classes, or one that learned to reconstruct images. This
is fine-tuning; with `train.freeze = ["!head"]` it is a probe of what the other has learned. At
another image size positions and bias tables are interpolated (models/resize.py).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.app.project.folder import ModelFolder
from manyheads.app.project.paths import find_model
from manyheads.app.project.recipe import Recipe
from manyheads.app.train.initialize import start_record
from manyheads.errors import RecipeError
from manyheads.models.resize import refit
from manyheads.nn.layers.head import heads
from manyheads.tasks.reconstruct import ENCODER
from manyheads.train.checkpoint import tensors

SHOWN = 8


def start_classifier(
    model: nn.Module, recipe: Recipe, start: str, classes: Sequence[str]
) -> dict[str, Any]:
    """Copy the weights of the model that a recipe starts from into a new classifier.

    Returns the entry of start.json.
    """
    folder = ModelFolder(find_model(start))
    trained = folder.model()
    theirs, same_classes = _weights(folder, tensors(trained), classes)
    ours = tensors(model)
    if not same_classes:
        theirs, ours = _without_heads(theirs, trained), _without_heads(ours, model)
    theirs = refit(folder.recipe.config(), recipe.config(), theirs, folder.library)
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


def _weights(
    folder: ModelFolder, stored: dict[str, Tensor], classes: Sequence[str]
) -> tuple[dict[str, Tensor], bool]:
    """Return a model's tensors as a classifier names them, and whether its head is wanted, too."""
    if folder.recipe.task == "classify":
        return stored, folder.labels() == list(classes)
    if folder.recipe.task == "reconstruct":
        encoder = {n.removeprefix(ENCODER): t for n, t in stored.items() if n.startswith(ENCODER)}
        return encoder, False
    raise RecipeError(
        f"start.model: the task of {folder.path} is {folder.recipe.task!r}. A classifier starts "
        'from a model whose task is "classify" or "reconstruct".'
    )


def _without_heads(named: dict[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """Leave out the tensors of a model's heads."""
    left_out = heads(model)
    return {n: tensor for n, tensor in named.items() if n.rpartition(".")[0] not in left_out}
