"""A pre-trained start for pictures: a classifier begins with another model's weights, a new head.

The other model is a classifier of other classes, or one that learned to reconstruct pictures. This
is fine-tuning; with `train.freeze = ["!head"]` it is a probe of what the other has learned. At
another image size positions and bias tables are interpolated (models/resize.py).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.app.folder import ModelFolder
from manyheads.app.paths import find_model
from manyheads.app.recipe import ClassifyRecipe, ReconstructRecipe
from manyheads.errors import RecipeError
from manyheads.models.resize import refit
from manyheads.nn.head import heads
from manyheads.tasks.reconstruct import ENCODER
from manyheads.train.checkpoint import sha256, tensors

SHOWN = 8


def start_classifier(
    model: nn.Module, recipe: ClassifyRecipe, classes: Sequence[str]
) -> dict[str, Any]:
    """Copy the weights of the model that a recipe starts from into a new classifier.

    Returns:
        The model, the sha256 of its weights, and the names of the tensors that now hold them.

    Raises:
        NotFoundError: there is no such model.
        FolderError: its folder is damaged.
        RecipeError: it is not a model for pictures, or of another shape.
    """
    assert recipe.start is not None
    folder = ModelFolder(find_model(recipe.start.model))
    trained = folder.model()
    theirs, same_classes = _weights(folder, tensors(trained), classes)
    ours = tensors(model)
    if not same_classes:
        theirs, ours = _without_heads(theirs, trained), _without_heads(ours, model)
    theirs = refit(folder.recipe.config(), recipe.config(), theirs, folder.library)
    missing = [f"- {name}: not there" for name in ours if name not in theirs]
    left = [f"- {name}: no place for it here" for name in theirs if name not in ours]
    shapes = [
        f"- {name}: {tuple(tensor.shape)} there, {tuple(ours[name].shape)} here"
        for name, tensor in theirs.items()
        if name in ours and tensor.shape != ours[name].shape
    ]
    wrong = missing + left + shapes
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
    return {
        "encoder": {
            "model": str(folder.path),
            "sha256": sha256(folder.path / "model.safetensors"),
            "tensors": sorted(theirs),
        }
    }


def _weights(
    folder: ModelFolder, stored: dict[str, Tensor], classes: Sequence[str]
) -> tuple[dict[str, Tensor], bool]:
    """Return a model's tensors as a classifier names them, and whether its head is wanted, too."""
    if isinstance(folder.recipe, ClassifyRecipe):
        return stored, folder.labels() == list(classes)
    if isinstance(folder.recipe, ReconstructRecipe):
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
