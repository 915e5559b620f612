"""The recipe of the task "tag"."""

from collections.abc import Sequence
from typing import Literal

from manyheads.data.tokenizers.characters import PAD
from manyheads.data.tokenizers.spacing import TAGS
from manyheads.tasks.tag.task import METRICS
from manyheads.tokenwise.token_pipeline import TokenRecipe


class TagRecipe(TokenRecipe):
    """A recipe with task = "tag": word spacing, an answer a character."""

    task: Literal["tag"]

    @property
    def metrics(self) -> Sequence[str]:
        """Of spaces, lines and characters."""
        return METRICS

    def derived(self) -> dict[str, int]:
        """The padding id, and the number of tags."""
        return {"pad": PAD, "classes": len(TAGS)}
