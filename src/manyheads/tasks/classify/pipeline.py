"""Classification of images, whole: class folders or tables, any image model, accuracy."""

from torch import Tensor

from manyheads.predict.task_pipeline import TRAINED_ELSEWHERE, Pipeline, Section
from manyheads.project.folder import ModelFolder
from manyheads.tasks.classify.predictor import Classifier
from manyheads.tasks.classify.recipe import ClassifyRecipe


class ClassifyPipeline(Pipeline[ClassifyRecipe, Classifier]):
    """Labelled images in, a classifier out."""

    task = "classify"
    recipe = ClassifyRecipe
    home = "manyheads.tasks.classify"
    looks = True
    predictor = Classifier
    forward = ("images",)
    use = "manyheads classify --model {name} image.png"

    def classifier_weights(self, stored: dict[str, Tensor]) -> dict[str, Tensor]:
        """All of them."""
        return stored

    def against_overfitting(self, recipe: ClassifyRecipe) -> dict[str, object]:
        """Weight decay, and augmentation."""
        settings: dict[str, object] = {"train.weight_decay": max(recipe.train.weight_decay, 0.05)}
        return settings | ({"augment.policy": "trivial"} if recipe.augment.policy == "none" else {})

    def card(self, folder: ModelFolder) -> Section:
        """Classes, and the command."""
        labels = folder.labels()
        named = ", ".join(labels[:20]) + (", ..." if len(labels) > 20 else "")
        what = f"Classifies images as one of {len(labels)} classes: {named}."
        section = super().card(folder)._replace(what=what)
        return section._replace(limits=TRAINED_ELSEWHERE) if folder.recipe.origin else section


PIPELINE = ClassifyPipeline()
