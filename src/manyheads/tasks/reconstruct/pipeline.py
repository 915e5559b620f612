"""Masked-image modelling, whole: images without labels, a ViT that draws hidden patches."""

from typing import cast

from torch import Tensor, nn

from manyheads.asks.look_request import LookRequest
from manyheads.errors import UsageError
from manyheads.models.model_config import ModelConfig
from manyheads.models.vit import Vit
from manyheads.predict.task_pipeline import Explanation, Pipeline
from manyheads.tasks.reconstruct.predictor import Reconstruction
from manyheads.tasks.reconstruct.recipe import ReconstructRecipe
from manyheads.tasks.reconstruct.task import ENCODER, Reconstructor


class ReconstructPipeline(Pipeline[ReconstructRecipe, Reconstruction]):
    """Images in, a model for classifiers to start from out."""

    task = "reconstruct"
    recipe = ReconstructRecipe
    home = "manyheads.tasks.reconstruct"
    predictor = Reconstruction
    forward = ("images",)
    members = ("config", "patches", "pool", "encode", "head")
    what = "Draws hidden parts of images: a start for a classifier, learned without labels."
    use = "manyheads train RECIPE start.model={name}"

    def build(self, recipe: ReconstructRecipe, config: ModelConfig) -> nn.Module:
        """Put the decoder of hidden patches behind the model."""
        return Reconstructor(cast(Vit, super().build(recipe, config)))

    def classifier_weights(self, stored: dict[str, Tensor]) -> dict[str, Tensor]:
        """Those of the encoder, which is a classifier without its head."""
        return {n.removeprefix(ENCODER): t for n, t in stored.items() if n.startswith(ENCODER)}

    def look(self, predictor: Reconstruction, request: LookRequest) -> Explanation:
        """Refuse: it gives no answer to explain."""
        raise UsageError(
            f"{predictor.folder.name} produces no class; there are no maps to show: start a "
            "classifier from it with start.model=FOLDER."
        )


PIPELINE = ReconstructPipeline()
