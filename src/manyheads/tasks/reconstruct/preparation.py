"""From a recipe to what a run needs before its model."""

from pathlib import Path

from manyheads.fit.inputs import images_digest, left_out, settings_of, training_images
from manyheads.predict.task_pipeline import Prepared, Say
from manyheads.project.folder import write_left_out, write_preprocessing
from manyheads.tasks.reconstruct.recipe import ReconstructRecipe
from manyheads.tasks.reconstruct.task import ReconstructTask


def prepare(recipe: ReconstructRecipe, out: Path, say: Say) -> Prepared:
    """Read the images."""
    images, valid = training_images(recipe, out, say)
    say(f"{len(images):,} images")
    task = ReconstructTask(images, valid, patch=recipe.patch, **settings_of(recipe))

    def write(folder: Path) -> None:
        write_preprocessing(folder, recipe.image)
        write_left_out(folder, left_out(images, valid))

    return Prepared(task, recipe.config(), write, {"data": images_digest(images, valid)})
