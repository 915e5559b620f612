"""The recipe of the task "read"."""

from collections.abc import Sequence
from typing import Literal

from pydantic import model_validator

from manyheads.data.images.line_images import LineImage
from manyheads.data.synthetic.text_lines import Rendering
from manyheads.data.tokenizers.characters import PAD
from manyheads.project.base_recipe import Recipe, Start
from manyheads.recipe_data.caption_data import ReadData
from manyheads.tasks.read.task import METRICS, ReadTrainConfig


class ReadRecipe(Recipe):
    """A recipe with task = "read"."""

    task: Literal["read"]
    data: ReadData
    image: LineImage = LineImage()
    render: Rendering = Rendering()
    # The [start] table: a trained reader whose weights and letters a new one begins with.
    start: Start | None = None
    train: ReadTrainConfig = ReadTrainConfig()

    @model_validator(mode="after")
    def _lines_have_characters(self) -> "ReadRecipe":
        if self.render.min_characters > self.render.max_characters:
            raise ValueError(
                f"render.min_characters is {self.render.min_characters} and max_characters "
                f"{self.render.max_characters}: the least cannot be more than the most"
            )
        if self.render.min_size > self.render.max_size:
            raise ValueError(
                f"render.min_size is {self.render.min_size} and max_size {self.render.max_size}: "
                "the smallest cannot be larger than the largest"
            )
        return self

    @property
    def metrics(self) -> Sequence[str]:
        """Of characters and lines."""
        return METRICS

    def tables_not_written(self) -> Sequence[str]:
        """Nothing is drawn of images."""
        return () if self.data.fonts is not None else ("render",)

    def derived(self) -> dict[str, int]:
        """The id of blank, and the height of lines."""
        return {"pad": PAD, "line_height": self.image.height}
