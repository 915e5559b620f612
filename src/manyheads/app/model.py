"""The model of a recipe: what its Config describes, in the form that its task trains."""

from torch import nn

from manyheads.app.recipe import Recipe, ReconstructRecipe
from manyheads.models.build import build
from manyheads.models.presets import Config
from manyheads.models.vit import Vit
from manyheads.tasks.reconstruct import Reconstructor


def build_model(recipe: Recipe, config: Config) -> nn.Module:
    """Build a recipe's model with fresh weights from torch's generator."""
    model = build(config)
    if not isinstance(recipe, ReconstructRecipe):
        return model
    assert isinstance(model, Vit)
    return Reconstructor(model)
