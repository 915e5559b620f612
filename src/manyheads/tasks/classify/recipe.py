"""The recipe of the task "classify"."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

from pydantic import model_validator

from manyheads.errors import NotFoundError
from manyheads.project.base_recipe import Converted, Start
from manyheads.project.folder import ModelFolder
from manyheads.project.paths import find_model
from manyheads.recipe_data.image_data import ImageRecipe, LabelledImageData
from manyheads.tasks.classify.distil import Distil
from manyheads.tasks.classify.task import METRICS, MULTI_LABEL_METRICS, ClassifyTrainConfig

OF_THE_DATA = ("classes", "height", "width", "channels")  # keys of a model
OF_CHANNELS = ("mode", "num_channels", "mean", "std")  # keys of [image]


class ClassifyRecipe(ImageRecipe):
    """A recipe with task = "classify"."""

    task: Literal["classify"]
    data: LabelledImageData
    converted: Converted | None = None
    # The [start] table: a trained folder whose weights a classifier begins with.
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
        """Take preset and preprocessing from the model to start from, where the file has none.

        Weights go on to mean what they learned only with the same pixels. A preset in the recipe
        stands for a whole [model] table, and each key of [image] for itself. If there is a preset,
        a model that is not there is reported when the run is prepared.
        """
        start = table.get("start")
        if not isinstance(start, dict) or not isinstance(start.get("model"), str):
            return
        try:
            folder = ModelFolder(find_model(start["model"]))
        except NotFoundError:
            if "preset" in table.get("model", {}):
                return
            raise
        model, image = table.setdefault("model", {}), table.setdefault("image", {})
        if isinstance(model, dict) and "preset" not in model:
            theirs = folder.recipe.model
            table["model"] = {key: theirs[key] for key in theirs if key not in OF_THE_DATA} | model
        if isinstance(image, dict) and folder.recipe.data.has_images:
            stored = asdict(folder.preprocessing())
            if image.get("mode", stored["mode"]) != stored["mode"]:  # other channels and numbers
                stored = {key: stored[key] for key in stored if key not in OF_CHANNELS}
            table["image"] = stored | image

    @property
    def metrics(self) -> Sequence[str]:
        """Those of one class per image, or of several."""
        return MULTI_LABEL_METRICS if self.data.multi_label else METRICS

    def tables_not_written(self) -> Sequence[str]:
        """The training of a converted model is not known."""
        return ("augment", "train") if self.converted else ()
