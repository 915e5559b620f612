"""Image encoders, whole: weights of other libraries without a classifier, for vectors of images."""

from pathlib import Path

from torch import Tensor

from manyheads.errors import RecipeError
from manyheads.predict.task_pipeline import (
    TRAINED_ELSEWHERE,
    Pipeline,
    Prepared,
    Say,
    Section,
)
from manyheads.project.folder import ModelFolder
from manyheads.tasks.embed.predictor import Embedder
from manyheads.tasks.embed.recipe import EmbedRecipe


class EmbedPipeline(Pipeline[EmbedRecipe, Embedder]):
    """A converted encoder: images in, vectors out."""

    task = "embed"
    recipe = EmbedRecipe
    home = "manyheads.tasks.embed"
    predictor = Embedder
    forward = ("images",)
    members = ("config", "features")
    what = "Turns images into vectors, and is a start for classifiers."
    use = "manyheads train RECIPE start.model={name}"

    def prepare(self, recipe: EmbedRecipe, out: Path, say: Say) -> Prepared:
        """Refuse: an encoder learns as a part of another model."""
        raise RecipeError(
            "An encoder is not trained alone: train a classifier, a captioner or a matcher that "
            "starts from its folder."
        )

    def classifier_weights(self, stored: dict[str, Tensor]) -> dict[str, Tensor]:
        """All of them."""
        return stored

    def card(self, folder: ModelFolder) -> Section:
        """Say that it was trained elsewhere."""
        return super().card(folder)._replace(limits=TRAINED_ELSEWHERE)


PIPELINE = EmbedPipeline()
