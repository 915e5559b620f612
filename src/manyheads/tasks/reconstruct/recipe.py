"""The recipe of the task "reconstruct"."""

from collections.abc import Sequence
from typing import Literal, cast

from manyheads.models.vit import VitConfig
from manyheads.recipe_data.image_data import ImageRecipe
from manyheads.tasks.reconstruct.task import METRICS, ReconstructTrainConfig


class ReconstructRecipe(ImageRecipe):
    """A recipe with task = "reconstruct": hidden patches are drawn from what is around them."""

    reads = ("patch",)

    task: Literal["reconstruct"]
    train: ReconstructTrainConfig = ReconstructTrainConfig()

    @property
    def metrics(self) -> Sequence[str]:
        """The loss."""
        return METRICS

    @property
    def patch(self) -> int:
        """Side of a patch in pixels."""
        return cast(VitConfig, self.config()).patch

    def derived(self) -> dict[str, int]:
        """Size and channels of the images; the head is not used."""
        return super().derived() | {"classes": 1}
