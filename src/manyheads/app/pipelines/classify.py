"""Classification of images, whole: class folders or tables, any image model, accuracy."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import model_validator
from torch import Tensor, nn

from manyheads.app.data.sources import image_split
from manyheads.app.data.tables import ImageRecipe, LabelledImageData
from manyheads.app.doctor.run_inspection import RunInspection
from manyheads.app.doctor.samples import ImageSamples, sample_images
from manyheads.app.engines.parity import Parity
from manyheads.app.evaluate.image_metrics import measure
from manyheads.app.evaluate.image_parity import classifier_parity
from manyheads.app.evaluate.score import images_to_measure, refuse_report, scored
from manyheads.app.explain.explain import explain_image, shapes_of_image
from manyheads.app.explain.given import refuse_for_images
from manyheads.app.pipeline import Explanation, Pipeline, Prepared, Say, Section
from manyheads.app.predictors.classifier import Classifier
from manyheads.app.predictors.image_inputs import named
from manyheads.app.project.folder import (
    ModelFolder,
    read_json,
    write_labels,
    write_left_out,
)
from manyheads.app.project.paths import find_model
from manyheads.app.project.recipe import Converted, Table
from manyheads.app.train.initialize_classifier import (
    classes_of,
    differences,
    inherit,
    start_classifier,
)
from manyheads.app.train.inputs import digest, images_digest, left_out, training_images
from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.asks.look_request import LookRequest
from manyheads.data.augment.augment import Augmentation
from manyheads.data.images.image_set import ImageSet
from manyheads.errors import DataError, RecipeError
from manyheads.lens.trace.shapes import ShapeLine
from manyheads.tasks.classify import (
    METRICS,
    MULTI_LABEL_METRICS,
    ClassifyTask,
    ClassifyTrainConfig,
)
from manyheads.tasks.distil import Distil, Teacher
from manyheads.train.device import best_device


class Start(Table):
    """The [start] table: a trained folder whose weights a classifier begins with.

    The head is a new one, unless the classes are the same.
    """

    model: str


class ClassifyRecipe(ImageRecipe):
    """A recipe with task = "classify"."""

    task: Literal["classify"]
    data: LabelledImageData
    converted: Converted | None = None
    start: Start | None = None
    distil: Distil | None = None
    train: ClassifyTrainConfig = ClassifyTrainConfig()

    @model_validator(mode="after")
    def _distils_one_class_each(self) -> "ClassifyRecipe":
        if self.distil is not None and self.data.multi_label:
            raise ValueError("a teacher of several classes per image cannot be learned from yet")
        return self

    @classmethod
    def complete(cls, table: dict[str, Any]) -> None:
        """Take preset and preprocessing from the model to start from, where the file has none."""
        start = table.get("start")
        if isinstance(start, dict) and isinstance(start.get("model"), str):
            inherit(table, start["model"])

    @property
    def origin(self) -> Converted | None:
        """Where a converted model comes from."""
        return self.converted

    @property
    def metrics(self) -> Sequence[str]:
        """Those of one class per image, or of several."""
        return MULTI_LABEL_METRICS if self.data.multi_label else METRICS

    def tables_not_written(self) -> Sequence[str]:
        """The training of a converted model is not known."""
        return ("augment", "train") if self.converted else ()


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
