"""Filling blanks, whole: sentences, a masked language model, perplexity."""

from typing import Any, ClassVar

from manyheads.data.text.corpus import Sentences
from manyheads.tasks.fill.predictor import MaskFiller
from manyheads.tasks.fill.recipe import FillRecipe
from manyheads.tasks.fill.task import MaskedToken
from manyheads.tokenwise.token_pipeline import LanguagePipeline


class FillPipeline(LanguagePipeline[FillRecipe, MaskFiller]):
    """Sentences in, a language model that predicts hidden tokens out."""

    task = "fill"
    recipe = FillRecipe
    predictor = MaskFiller
    members = ("config",)
    what = "Fills blanks: predicts hidden tokens of a text from both sides of them."
    use = 'manyheads fill --model {name} "... <mask> ..."'
    signatures: ClassVar[dict[str, str]] = {
        name: signature.replace("per token", "per hidden token")
        for name, signature in LanguagePipeline.signatures.items()
    }

    def examples(
        self, recipe: FillRecipe, lines: Sentences, reader: Any, *, train: bool
    ) -> MaskedToken:
        """Predict hidden tokens from both sides."""
        masked = recipe.train.masked
        if not train:
            return MaskedToken(lines, reader, masked=masked)
        return MaskedToken(lines, reader, recipe.train.max_length, masked=masked, seed=recipe.seed)


PIPELINE = FillPipeline()
