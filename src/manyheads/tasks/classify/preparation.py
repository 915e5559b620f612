"""From a recipe to what a run needs before its model."""

from pathlib import Path

from manyheads.data.images.image_set import ImageSet
from manyheads.errors import DataError, RecipeError
from manyheads.fit.inputs import digest, images_digest, left_out, settings_of, training_images
from manyheads.predict.task_pipeline import Prepared, Say
from manyheads.project.folder import ModelFolder, read_json, write_labels, write_left_out
from manyheads.project.paths import find_model
from manyheads.recipe_data.image_splits import image_split
from manyheads.tasks.classify.distil import Teacher
from manyheads.tasks.classify.initialize import classes_of, differences
from manyheads.tasks.classify.recipe import ClassifyRecipe
from manyheads.tasks.classify.task import ClassifyTask


def prepare(recipe: ClassifyRecipe, out: Path, say: Say) -> Prepared:
    """Read the images and their classes; load the teacher, if there is one."""
    classes: list[str] = []
    if recipe.start is not None:
        start = ModelFolder(find_model(recipe.start.model))
        say(f"starting from {start.path}: {differences(recipe, start)}")
        classes = classes_of(start)
    images, valid = training_images(recipe, out, say)
    if sorted(classes) == sorted(images.classes):  # then the head is kept, too
        images, valid = images.relabel(classes), valid.relabel(classes)
    missing = set() if images.multi_label else set(range(len(images.classes))) - set(images.labels)
    if missing:
        names = ", ".join(images.classes[number] for number in sorted(missing))
        raise DataError(
            f"There are no training images of {names}. Remove the empty class, or add images."
        )
    learned = out / "labels.json"
    if learned.exists() and (before := read_json(learned)) != images.classes:
        raise DataError(
            f"The classes of the data are {', '.join(images.classes)}, but the run in {out} "
            f"began with {', '.join(map(str, before))}: give them their names back, or start "
            "another run with another `out`."
        )
    say(f"{len(images):,} images of {len(images.classes)} classes")
    teacher, conditions = _teacher(recipe, images.classes)
    own = settings_of(recipe)
    task = ClassifyTask(images, valid, distil=recipe.distil, teacher=teacher, **own)
    config = recipe.config(classes=len(images.classes))

    def write(folder: Path) -> None:
        write_labels(folder, recipe.image, images.classes)
        write_left_out(folder, left_out(images, valid))

    return Prepared(task, config, write, {"data": images_digest(images, valid)} | conditions)


def validation_images(recipe: ClassifyRecipe) -> ImageSet:
    """Read them."""
    return image_split("valid", recipe)


def _teacher(recipe: ClassifyRecipe, classes: list[str]) -> tuple[Teacher | None, dict[str, str]]:
    """Load the classifier that a recipe learns from, and say which it is."""
    if recipe.distil is None:
        return None, {}
    folder = ModelFolder(find_model(recipe.distil.teacher))
    if folder.recipe.task != "classify":
        raise RecipeError(
            f"distil.teacher: the task of {folder.path} is {folder.recipe.task!r}; a teacher is a "
            "classifier."
        )
    teacher = Teacher(
        folder.model(), folder.preprocessing(), recipe.image, folder.labels(), classes
    )
    return teacher, {"teacher": digest(*folder.manifest["sha256"].values())}
