"""The recipe of the task "classify"."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import model_validator

from manyheads.project.recipe import Converted, Table
from manyheads.recipe_data.image_data import ImageRecipe, LabelledImageData
from manyheads.tasks.classify.distil import Distil
from manyheads.tasks.classify.initialize import inherit
from manyheads.tasks.classify.task import (
    METRICS,
    MULTI_LABEL_METRICS,
    ClassifyTrainConfig,
)


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
