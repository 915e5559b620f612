"""Matching, whole: images with texts in, two towers out; recall in both directions."""

from torch import Tensor

from manyheads.predict.task_pipeline import Pipeline
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
    what = "Puts images and texts into one space: finds images by words or by an image."
    use = "manyheads index IMAGES --model {name} --out images.index"

    def classifier_weights(self, stored: dict[str, Tensor]) -> dict[str, Tensor]:
        """Those of the image tower."""
        own = "images."
        return {
            name.removeprefix(own): each for name, each in stored.items() if name.startswith(own)
        }


PIPELINE = MatchPipeline()
