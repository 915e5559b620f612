"""From a recipe to what a run needs before its model."""

from pathlib import Path

from manyheads.errors import RecipeError
from manyheads.predict.task_pipeline import Prepared, Say
from manyheads.tasks.embed.recipe import EmbedRecipe


def prepare(recipe: EmbedRecipe, out: Path, say: Say) -> Prepared:
    """Refuse: an encoder learns as a part of another model."""
    raise RecipeError(
        "An encoder is not trained alone: train a classifier, a captioner or a matcher that "
        "starts from its folder."
    )
