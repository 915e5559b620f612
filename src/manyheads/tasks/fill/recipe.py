"""The recipe of the task "fill"."""

from typing import Literal

from manyheads.tasks.fill.task import MASK, FillTrainConfig
from manyheads.tokenwise.token_pipeline import LanguageRecipe


class FillRecipe(LanguageRecipe):
    """A recipe with task = "fill": a language model that predicts hidden tokens."""

    task: Literal["fill"]
    train: FillTrainConfig = FillTrainConfig()

    def derived(self) -> dict[str, int]:
        """Special ids, that of the mask too."""
        return super().derived() | {"mask": MASK}
