"""The recipe of the task "embed"."""

from typing import Any, Literal

from manyheads.fit.training_images import ImageTrainConfig
from manyheads.project.base_recipe import Converted
from manyheads.recipe_data.image_data import ImageRecipe


class EmbedRecipe(ImageRecipe):
    """A recipe with task = "embed": where a converted encoder comes from."""

    task: Literal["embed"]
    converted: Converted
    train: ImageTrainConfig = ImageTrainConfig()

    def derived(self) -> dict[str, Any]:
        """Size and channels of the images; 0 classes, or the width of a projection."""
        return super().derived() | {"classes": self.model.get("classes", 0)}

    def tables_not_written(self) -> tuple[str, ...]:
        """The training of a converted model is not known."""
        return ("augment", "train")
