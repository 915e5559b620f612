"""Image encoders, whole: weights of other libraries without a classifier, for vectors of images."""

from pathlib import Path
from typing import Any, Literal, cast

from torch import Tensor

from manyheads.app.data.tables import ImageRecipe
from manyheads.app.engines.parity import Parity
from manyheads.app.evaluate.image_parity import encoder_parity
from manyheads.app.pipeline import Pipeline, Prepared, Say, Section
from manyheads.app.predictors.embedder import Embedder
from manyheads.app.project.folder import ModelFolder
from manyheads.app.project.recipe import Converted
from manyheads.asks.export_request import ParityRequest
from manyheads.errors import RecipeError
from manyheads.tasks.classify import ImageTrainConfig


class EmbedRecipe(ImageRecipe):
    """A recipe with task = "embed": where a converted encoder comes from."""

    task: Literal["embed"]
    converted: Converted
    train: ImageTrainConfig = ImageTrainConfig()

    @property
    def origin(self) -> Converted:
        """Where the encoder comes from."""
        return self.converted

    def derived(self) -> dict[str, Any]:
        """Size and channels of the images; 0 classes, or the width of a projection."""
        return super().derived() | {"classes": self.model.get("classes", 0)}

    def tables_not_written(self) -> tuple[str, ...]:
        """The training of a converted model is not known."""
        return ("augment", "train")


class EmbedPipeline(Pipeline[EmbedRecipe, Embedder]):
    """A converted encoder: images in, vectors out."""

    task = "embed"
    recipe = EmbedRecipe
    predictor = Embedder
    forward = ("images",)
    members = ("config", "features")

    def prepare(self, recipe: EmbedRecipe, out: Path, say: Say) -> Prepared:
        """Refuse: an encoder learns as a part of another model."""
        raise RecipeError(
            "An encoder is not trained alone: train a classifier, a captioner or a matcher that "
            "starts from its folder."
        )

    def parity(self, reference: Embedder, exported: Embedder, request: ParityRequest) -> Parity:
        """Compare vectors."""
        recipe = cast(EmbedRecipe, reference.folder.recipe)
        return encoder_parity(reference, exported, recipe, request)

    def classifier_weights(self, stored: dict[str, Tensor]) -> dict[str, Tensor]:
        """All of them."""
        return stored

    def card(self, folder: ModelFolder) -> Section:
        """Both uses."""
        return Section(
            "Turns images into vectors, and is a start for classifiers.",
            f"manyheads train RECIPE start.model={folder.name}",
            "Trained elsewhere; its makers know on what, and what to expect.",
        )


PIPELINE = EmbedPipeline()
