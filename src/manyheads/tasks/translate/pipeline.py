"""Translation, whole: parallel text, an encoder-decoder, BLEU, and what looking shows."""

from typing import cast

from manyheads.predict.task_pipeline import Pipeline, Section
from manyheads.project.folder import ModelFolder
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import TranslateRecipe


class TranslatePipeline(Pipeline[TranslateRecipe, Translator]):
    """Sentence pairs in, a translator out."""

    task = "translate"
    recipe = TranslateRecipe
    home = "manyheads.tasks.translate"
    looks = True
    predictor = Translator
    forward = ("source", "target", "scored", "readout")
    members = ("config", "start", "step", "reorder", "keep")

    def against_overfitting(self, recipe: TranslateRecipe) -> dict[str, object]:
        """R-Drop."""
        return {"train.r_drop": max(recipe.train.r_drop, 5.0)}

    def against_memorising(self, recipe: TranslateRecipe) -> dict[str, object]:
        """Subword regularisation."""
        return {"tokenizer.sampling": max(recipe.tokenizer.sampling, 0.1)}

    def card(self, folder: ModelFolder) -> Section:
        """Languages, and the command."""
        recipe = cast(TranslateRecipe, folder.recipe)
        what = f"Translates text from `{recipe.data.source}` to `{recipe.data.target}`."
        use = f'manyheads translate --model {folder.name} "..."'
        if recipe.converted is None:
            return Section(what, use)
        limits = f"Trained elsewhere; its makers' files are in `{recipe.converted.format}/`."
        return Section(what, use, limits)


PIPELINE = TranslatePipeline()
