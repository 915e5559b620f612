"""A pre-trained start for pictures: a classifier begins with another model's weights, a new head.

The other model is a classifier of other classes, or one that learned to reconstruct pictures. This
is fine-tuning; with `train.freeze = ["!head"]` it is a probe of what the other has learned. At
another image size learned positions are interpolated (Dosovitskiy et al. 2021, section 3.2).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.app.folder import ModelFolder
from manyheads.app.paths import find_model
from manyheads.app.recipe import ClassifyRecipe, ReconstructRecipe
from manyheads.errors import RecipeError
from manyheads.nn.positions import resize_grid
from manyheads.tasks.reconstruct import ENCODER
from manyheads.train.checkpoint import sha256, tensors

HEAD = "head"  # what the names of a classifier's last layer begin with
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
    theirs, same_classes = _weights(folder, classes)
    own = tensors(model)
    wanted = [name for name in own if same_classes or not _is_head(name)]
    missing = [f"- {name}: not there" for name in wanted if name not in theirs]
    left = [
        f"- {name}: no place for it here"
        for name in theirs
        if name not in own and not _is_head(name)
    ]
    fitted = {name: _fit(name, theirs[name], folder, recipe) for name in wanted if name in theirs}
    shapes = [
        f"- {name}: {tuple(tensor.shape)} there, {tuple(own[name].shape)} here"
        for name, tensor in fitted.items()
        if tensor.shape != own[name].shape
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
        for name, tensor in fitted.items():
            own[name].copy_(tensor)
    return {
        "encoder": {
            "model": str(folder.path),
            "sha256": sha256(folder.path / "model.safetensors"),
            "tensors": sorted(fitted),
        }
    }


def _weights(folder: ModelFolder, classes: Sequence[str]) -> tuple[dict[str, Tensor], bool]:
    """Return a model's tensors as a classifier names them, and whether its head is wanted, too."""
    stored = tensors(folder.model())
    if isinstance(folder.recipe, ClassifyRecipe):
        return stored, folder.labels() == list(classes)
    if isinstance(folder.recipe, ReconstructRecipe):
        encoder = {n.removeprefix(ENCODER): t for n, t in stored.items() if n.startswith(ENCODER)}
        return encoder, False
    raise RecipeError(
        f"start.model: the task of {folder.path} is {folder.recipe.task!r}. A classifier starts "
        'from a model whose task is "classify" or "reconstruct".'
    )


def _is_head(name: str) -> bool:
    return name.startswith(HEAD)


def _fit(name: str, tensor: Tensor, folder: ModelFolder, recipe: ClassifyRecipe) -> Tensor:
    """Fit positions learned for another grid of patches; leave everything else as it is."""
    old, new = (getattr(each.config(), "grid", None) for each in (folder.recipe, recipe))
    if name != "positions.table" or old is None or new is None or old == new:
        return tensor
    return resize_grid(tensor, old, new, len(tensor) - old[0] * old[1])
