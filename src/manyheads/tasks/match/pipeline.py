"""Matching, whole: images with texts in, two towers out; recall in both directions."""

from torch import Tensor

from manyheads.predict.task_pipeline import Pipeline, Section
from manyheads.project.folder import ModelFolder
from manyheads.tasks.match.predictor import Matcher
from manyheads.tasks.match.recipe import MatchRecipe


class MatchPipeline(Pipeline[MatchRecipe, Matcher]):
    """Images with texts in, a matcher out."""

    task = "match"
    recipe = MatchRecipe
    home = "manyheads.tasks.match"
    predictor = Matcher
    forward = ("images", "tokens")
    members = ("config", "encode_images", "encode_texts", "scores")

    def classifier_weights(self, stored: dict[str, Tensor]) -> dict[str, Tensor]:
        """Those of the image tower."""
        own = "images."
        return {
            name.removeprefix(own): each for name, each in stored.items() if name.startswith(own)
        }

    def card(self, folder: ModelFolder) -> Section:
        """Both uses."""
        what = "Puts images and texts into one space: finds images by words or by an image."
        return Section(what, f"manyheads index IMAGES --model {folder.name} --out images.index")


PIPELINE = MatchPipeline()
