"""Masked-image modelling, whole: images without labels, a ViT that draws hidden patches."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import model_validator
from torch import Tensor, nn

from manyheads.app.data.tables import ImageRecipe
from manyheads.app.doctor.run_inspection import RunInspection
from manyheads.app.doctor.samples import ImageSamples, sample_images
from manyheads.app.evaluate.score import images_to_measure, refuse_report, scored
from manyheads.app.pipeline import Explanation, Pipeline, Prepared, Say
from manyheads.app.predictors.reconstructor import Reconstruction
from manyheads.app.project.folder import write_left_out, write_preprocessing
from manyheads.app.train.inputs import images_digest, left_out, training_images
from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.look_request import LookRequest
from manyheads.data.augment.augment import Augmentation
from manyheads.data.images.image_set import ImageSet
from manyheads.errors import UsageError
from manyheads.models.config import ModelConfig
from manyheads.models.vit import Vit, VitConfig
from manyheads.tasks.classify import Pixels
from manyheads.tasks.metrics import Score
from manyheads.tasks.reconstruct import (
    ENCODER,
    METRICS,
    Reconstructor,
    ReconstructTask,
    ReconstructTrainConfig,
    distance,
)
from manyheads.train.device import best_device


class ReconstructRecipe(ImageRecipe):
    """A recipe with task = "reconstruct": hidden patches are drawn from what is around them."""

    reads = ("patch",)

    task: Literal["reconstruct"]
    train: ReconstructTrainConfig = ReconstructTrainConfig()

    @model_validator(mode="after")
    def _mixes_nothing(self) -> "ReconstructRecipe":
        if self.augment.mixes:
            raise ValueError("mixup and cutmix mix classes, and there are none: leave them out")
        return self

    @property
    def metrics(self) -> Sequence[str]:
        """The loss."""
        return METRICS

    @property
    def patch(self) -> int:
        """Side of a patch in pixels."""
        return cast(VitConfig, self.config()).patch

    def derived(self) -> dict[str, int]:
        """Size and channels of the images; the head is not used."""
        return super().derived() | {"classes": 1}


class ReconstructPipeline(Pipeline[ReconstructRecipe, Reconstruction]):
    """Images in, a model for classifiers to start from out."""

    task = "reconstruct"
    recipe = ReconstructRecipe
    predictor = Reconstruction
    forward = ("images",)
    members = ("config", "patches", "pool", "encode", "head")
    what = "Draws hidden parts of images: a start for a classifier, learned without labels."
    use = "manyheads train RECIPE start.model={name}"

    def prepare(self, recipe: ReconstructRecipe, out: Path, say: Say) -> Prepared:
        """Read the images."""
        images, valid = training_images(recipe, out, say)
        say(f"{len(images):,} images")
        config = recipe.config()
        task = ReconstructTask(
            images,
            valid,
            recipe.image,
            recipe.augment,
            recipe.train,
            recipe.patch,
            seed=recipe.seed,
            device=best_device(),
        )

        def write(folder: Path) -> None:
            write_preprocessing(folder, recipe.image)
            write_left_out(folder, left_out(images, valid))

        return Prepared(
            task,
            config,
            write,
            {"data": images_digest(images, valid)},
        )

    def build(self, recipe: ReconstructRecipe, config: ModelConfig) -> nn.Module:
        """Put the decoder of hidden patches behind the model."""
        return Reconstructor(cast(Vit, super().build(recipe, config)))

    def classifier_weights(self, stored: dict[str, Tensor]) -> dict[str, Tensor]:
        """Those of the encoder, which is a classifier without its head."""
        return {n.removeprefix(ENCODER): t for n, t in stored.items() if n.startswith(ENCODER)}

    def evaluate(self, predictor: Reconstruction, request: EvaluateRequest) -> dict[str, Any]:
        """Measure the distance between hidden patches and what was drawn in their place."""
        refuse_report(predictor.folder.name, request)
        recipe = cast(ReconstructRecipe, predictor.folder.recipe)
        images, head = images_to_measure(recipe, request)
        masked, pixels = recipe.train.masked, Pixels(images, predictor.preprocessing)
        found = distance(predictor.model, pixels, recipe.patch, masked)
        signature = f"mean L1 distance on hidden pixels, normalised, {masked:.0%} hidden"
        return head | {"images": len(images)} | scored({"loss": Score(found, signature)})

    def look(self, predictor: Reconstruction, request: LookRequest) -> Explanation:
        """Refuse: it gives no answer to explain."""
        raise UsageError(
            f"{predictor.folder.name} produces no class; there are no maps to show: start a "
            "classifier from it with start.model=FOLDER."
        )

    def samples(self, recipe: ReconstructRecipe, run: RunInspection) -> ImageSamples:
        """Take some images of both splits."""

        def task(some: ImageSet) -> ReconstructTask:
            return ReconstructTask(
                some,
                some,
                recipe.image,
                Augmentation(),
                recipe.train,
                recipe.patch,
                seed=recipe.seed,
            )

        return sample_images(recipe, task, labelled=False)


PIPELINE = ReconstructPipeline()
