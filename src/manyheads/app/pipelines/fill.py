"""Filling blanks, whole: sentences, a masked language model, perplexity."""

from typing import Any, Literal

from manyheads.app.pipelines.token_pipeline import LanguagePipeline, LanguageRecipe
from manyheads.app.predictors.language_models import MaskFiller
from manyheads.data.text.sentences import Sentences
from manyheads.tasks.language import MASK, FillTrainConfig, MaskedToken


class FillRecipe(LanguageRecipe):
    """A recipe with task = "fill": a language model that predicts hidden tokens."""

    task: Literal["fill"]
    train: FillTrainConfig = FillTrainConfig()

    def derived(self) -> dict[str, int]:
        """Special ids, that of the mask too."""
        return super().derived() | {"mask": MASK}


class FillPipeline(LanguagePipeline[FillRecipe, MaskFiller]):
    """Sentences in, a language model that predicts hidden tokens out."""

    task = "fill"
    recipe = FillRecipe
    predictor = MaskFiller
    members = ("config",)
    what = "Fills blanks: predicts hidden tokens of a text from both sides of them."
    use = 'manyheads fill --model {name} "... <mask> ..."'
    predicted = "hidden token"

    def examples(
        self, recipe: FillRecipe, lines: Sentences, reader: Any, *, train: bool
    ) -> MaskedToken:
        """Predict hidden tokens from both sides."""
        masked = recipe.train.masked
        if not train:
            return MaskedToken(lines, reader, masked=masked)
        return MaskedToken(lines, reader, recipe.train.max_length, masked=masked, seed=recipe.seed)


PIPELINE = FillPipeline()
