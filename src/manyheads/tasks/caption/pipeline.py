"""Captions, whole: images with texts in, a captioner out; exact match and chrF."""

from typing import Any, cast

from manyheads.predict.task_pipeline import TRAINED_ELSEWHERE, Pipeline, Section
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
    what = "Writes a text for an image."
    use = "manyheads caption --model {name} image.png"

    def card(self, folder: ModelFolder) -> Section:
        """Languages, and the command."""
        section = super().card(folder)
        if folder.recipe.origin is not None:
            return section._replace(limits=TRAINED_ELSEWHERE)
        languages = list(cast(Any, folder.tokenizers().target).languages)
        return section._replace(what=f"Writes a text for an image, in: {', '.join(languages)}.")


PIPELINE = CaptionPipeline()
