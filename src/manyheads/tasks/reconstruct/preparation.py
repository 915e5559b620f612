"""From a recipe to what a run needs before its model."""

from pathlib import Path

from manyheads.fit.inputs import images_digest, left_out, training_images
from manyheads.predict.task_pipeline import Prepared, Say
from manyheads.project.folder import write_left_out, write_preprocessing
from manyheads.tasks.reconstruct.recipe import ReconstructRecipe
from manyheads.tasks.reconstruct.task import ReconstructTask
from manyheads.train.device import best_device


def prepare(recipe: ReconstructRecipe, out: Path, say: Say) -> Prepared:
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

    return Prepared(task, config, write, {"data": images_digest(images, valid)})
