"""Classification of images, whole: class folders or tables, any image model, accuracy."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.asks.look_request import LookRequest
from manyheads.data.augment.augment import Augmentation
from manyheads.data.images.image_set import ImageSet
from manyheads.doctor.image_samples import ImageSamples, sample_images
from manyheads.doctor.run_inspection import RunInspection
from manyheads.engines.parity import Parity
from manyheads.errors import DataError, RecipeError
from manyheads.fit.inputs import digest, images_digest, left_out, training_images
from manyheads.lens.trace.shapes import ShapeLine
from manyheads.look.refusals import refuse_for_images
from manyheads.measure.score import images_to_measure, refuse_report, scored
from manyheads.predict.image_inputs import named
from manyheads.predict.pipeline import Explanation, Pipeline, Prepared, Say, Section
from manyheads.project.folder import ModelFolder, read_json, write_labels, write_left_out
from manyheads.project.paths import find_model
from manyheads.recipe_data.image_splits import image_split
from manyheads.tasks.classify.distil import Teacher
from manyheads.tasks.classify.evaluation import measure
from manyheads.tasks.classify.initialize import classes_of, differences, start_classifier
from manyheads.tasks.classify.look import explain_image, shapes_of_image
from manyheads.tasks.classify.parity import classifier_parity
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.classify.recipe import ClassifyRecipe
from manyheads.tasks.classify.task import ClassifyTask
from manyheads.train.device import best_device


class ClassifyPipeline(Pipeline[ClassifyRecipe, Classifier]):
    """Labelled images in, a classifier out."""

    task = "classify"
    recipe = ClassifyRecipe
    predictor = Classifier
    forward = ("images",)

    def prepare(self, recipe: ClassifyRecipe, out: Path, say: Say) -> Prepared:
        """Read the images and their classes; load the teacher, if there is one."""
        classes: list[str] = []
        if recipe.start is not None:
            start = ModelFolder(find_model(recipe.start.model))
            say(f"starting from {start.path}: {differences(recipe, start)}")
            classes = classes_of(start)
        images, valid = training_images(recipe, out, say)
        if sorted(classes) == sorted(images.classes):  # then the head is kept, too
            images, valid = images.relabel(classes), valid.relabel(classes)
        missing = (
            set() if images.multi_label else set(range(len(images.classes))) - set(images.labels)
        )
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
        task = ClassifyTask(
            images,
            valid,
            recipe.image,
            recipe.augment,
            recipe.train,
            seed=recipe.seed,
            device=best_device(),
            distil=recipe.distil,
            teacher=teacher,
        )
        config = recipe.config(classes=len(images.classes))

        def write(folder: Path) -> None:
            write_labels(folder, recipe.image, images.classes)
            write_left_out(folder, left_out(images, valid))

        return Prepared(
            task,
            config,
            write,
            {"data": images_digest(images, valid)} | conditions,
        )

    def initialize(
        self, model: nn.Module, recipe: ClassifyRecipe, out: Path
    ) -> dict[str, Any] | None:
        """Copy the weights of the model that [start] names."""
        if recipe.start is None:
            return None
        return start_classifier(model, recipe, recipe.start.model, read_json(out / "labels.json"))

    def classifier_weights(self, stored: dict[str, Tensor]) -> dict[str, Tensor]:
        """All of them."""
        return stored

    def evaluate(self, predictor: Classifier, request: EvaluateRequest) -> dict[str, Any]:
        """Score classes: accuracy and calibration, or average precision of several labels."""
        refuse_report(predictor.folder.name, request)
        images, head = images_to_measure(cast(ClassifyRecipe, predictor.folder.recipe), request)
        measured = measure(predictor, images.relabel(predictor.labels))
        return head | scored(measured.scores) | measured.details

    def parity(self, reference: Classifier, exported: Classifier, request: ParityRequest) -> Parity:
        """Compare logits and classes."""
        recipe = cast(ClassifyRecipe, reference.folder.recipe)
        return classifier_parity(reference, exported, recipe, request)

    def validation_images(self, recipe: ClassifyRecipe) -> ImageSet:
        """Read them."""
        return image_split("valid", recipe)

    def look(self, predictor: Classifier, request: LookRequest) -> Explanation:
        """Show what speaks for a class."""
        refuse_for_images(predictor, request)
        view, pixels = explain_image(
            predictor,
            request.given,
            target=request.target,
            baseline=request.baseline,
            integrated=request.integrated,
        )
        return Explanation({"path": named(request.given)}, view, pixels)

    def shapes(self, predictor: Classifier, given: str) -> list[ShapeLine]:
        """Walk through the classification of an image."""
        refuse_for_images(predictor, LookRequest(given=given))
        return shapes_of_image(predictor, Path(given))

    def samples(self, recipe: ClassifyRecipe, run: RunInspection) -> ImageSamples:
        """Take some images of both splits."""
        config = replace(recipe.train, label_smoothing=0.0, class_weights=None)

        def task(some: ImageSet) -> ClassifyTask:
            return ClassifyTask(some, some, recipe.image, Augmentation(), config, seed=recipe.seed)

        return sample_images(recipe, task, labelled=True)

    def against_overfitting(self, recipe: ClassifyRecipe) -> dict[str, object]:
        """Weight decay, and augmentation."""
        settings: dict[str, object] = {"train.weight_decay": max(recipe.train.weight_decay, 0.05)}
        return settings | ({"augment.policy": "trivial"} if recipe.augment.policy == "none" else {})

    def card(self, folder: ModelFolder) -> Section:
        """Classes, and the command."""
        labels = folder.labels()
        named = ", ".join(labels[:20]) + (", ..." if len(labels) > 20 else "")
        what = f"Classifies images as one of {len(labels)} classes: {named}."
        use = f"manyheads classify --model {folder.name} image.png"
        if folder.recipe.origin is None:
            return Section(what, use)
        limits = "Trained elsewhere; its makers know on what, and what to expect."
        return Section(what, use, limits)


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


PIPELINE = ClassifyPipeline()
