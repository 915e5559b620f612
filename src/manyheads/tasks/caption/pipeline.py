"""Captions, whole: images with texts in, a captioner out; exact match and chrF."""

from typing import Any, cast

from manyheads.predict.task_pipeline import Pipeline, Section
from manyheads.project.folder import ModelFolder
from manyheads.tasks.caption.predictor import Captioner
from manyheads.tasks.caption.recipe import CaptionRecipe


class CaptionPipeline(Pipeline[CaptionRecipe, Captioner]):
    """Images with texts in, a captioner out."""

    task = "caption"
    recipe = CaptionRecipe
    home = "manyheads.tasks.caption"
    looks = True
    predictor = Captioner
    forward = ("images", "target", "owners", "scored", "readout")
    members = ("config", "start", "step", "reorder", "keep")

    def card(self, folder: ModelFolder) -> Section:
        """Languages, and the command."""
        use = f"manyheads caption --model {folder.name} image.png"
        if folder.recipe.origin is not None:
            limits = "Trained elsewhere; its makers know on what, and what to expect."
            return Section("Writes a text for an image.", use, limits)
        languages = list(cast(Any, folder.tokenizers().target).languages)
        return Section(f"Writes a text for an image, in: {', '.join(languages)}.", use)


PIPELINE = CaptionPipeline()
