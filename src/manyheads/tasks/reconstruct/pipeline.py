"""Masked-image modelling, whole: images without labels, a ViT that draws hidden patches."""

from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.look_request import LookRequest
from manyheads.data.augment.augment import Augmentation
from manyheads.data.images.image_set import ImageSet
from manyheads.doctor.image_samples import ImageSamples, sample_images
from manyheads.doctor.run_inspection import RunInspection
from manyheads.errors import UsageError
from manyheads.fit.inputs import images_digest, left_out, training_images
from manyheads.fit.training_images import Pixels
from manyheads.measure.score import images_to_measure, refuse_report, scored
from manyheads.measure.text_metrics import Score
from manyheads.models.config import ModelConfig
from manyheads.models.vit import Vit
from manyheads.predict.pipeline import Explanation, Pipeline, Prepared, Say
from manyheads.project.folder import write_left_out, write_preprocessing
from manyheads.tasks.reconstruct.predictor import Reconstruction
from manyheads.tasks.reconstruct.recipe import ReconstructRecipe
from manyheads.tasks.reconstruct.task import ENCODER, Reconstructor, ReconstructTask, distance
from manyheads.train.device import best_device


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
