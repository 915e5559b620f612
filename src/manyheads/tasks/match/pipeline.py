"""Matching, whole: images with texts in, two towers out; recall in both directions."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.data.images.image_file import SUFFIXES
from manyheads.data.images.image_set import ImageSet
from manyheads.engines.parity import Parity
from manyheads.fit.inputs import digest, images_digest, readable_captions
from manyheads.lens.trace.shapes import ShapeLine, walk
from manyheads.measure.score import refuse_report, scored
from manyheads.predict.pipeline import Pipeline, Prepared, Say, Section
from manyheads.project.folder import ModelFolder, write_preprocessing, write_vocabularies
from manyheads.project.vocabulary import SHARED, learn_tokenizer, load_vocabularies
from manyheads.recipe_data.caption_splits import captioned_split, captioned_splits
from manyheads.tasks.match.evaluation import matches_to_measure, measure_matches, queries_of
from manyheads.tasks.match.parity import matcher_parity
from manyheads.tasks.match.predictor import Matcher
from manyheads.tasks.match.recipe import MatchRecipe
from manyheads.tasks.match.task import MatchTask
from manyheads.train.device import best_device


class MatchPipeline(Pipeline[MatchRecipe, Matcher]):
    """Images with texts in, a matcher out."""

    task = "match"
    recipe = MatchRecipe
    predictor = Matcher
    forward = ("images", "tokens")
    members = ("config", "encode_images", "encode_texts", "scores")

    def prepare(self, recipe: MatchRecipe, out: Path, say: Say) -> Prepared:
        """Read images and texts; learn the vocabulary, or take that of the run."""
        train, valid = readable_captions(*captioned_splits(recipe), recipe, out, say)
        found = load_vocabularies(out)
        if not found:
            say(f"learning a vocabulary from {len(train.texts):,} texts")
            found = {SHARED: learn_tokenizer(train.texts, recipe.tokenizer)}
        tokenizer = found[SHARED]
        asked = replace(queries_of(valid, "valid", recipe.data.asked), images=valid.images)
        task = MatchTask(
            train,
            asked,
            tokenizer,
            recipe.image,
            recipe.augment,
            recipe.train,
            seed=recipe.seed,
            device=best_device(),
            train_queries=queries_of(train, "train", recipe.data.asked)
            if recipe.data.queries
            else None,
        )
        say(
            f"{len(train):,} images, {len(train.texts):,} texts; {len(valid):,} images to validate "
            "on"
        )

        def write(folder: Path) -> None:
            write_vocabularies(folder, found)
            write_preprocessing(folder, recipe.image)

        texts = digest(*train.texts, *train.languages, *asked.texts, *asked.languages)
        return Prepared(
            task,
            recipe.config(vocabulary=len(tokenizer)),
            write,
            {"data": digest(images_digest(train.images, valid.images), texts)},
        )

    def classifier_weights(self, stored: dict[str, Tensor]) -> dict[str, Tensor]:
        """Those of the image tower."""
        own = "images."
        return {
            name.removeprefix(own): each for name, each in stored.items() if name.startswith(own)
        }

    def evaluate(self, predictor: Matcher, request: EvaluateRequest) -> dict[str, Any]:
        """Find images by texts and texts by images."""
        refuse_report(predictor.folder.name, request, matches=True)
        recipe = cast(MatchRecipe, predictor.folder.recipe)
        asked, among, head = matches_to_measure(recipe, recipe.data.asked, request)
        scores, more = measure_matches(predictor, asked, among)
        return head | scored(scores) | more

    def parity(self, reference: Matcher, exported: Matcher, request: ParityRequest) -> Parity:
        """Compare the vectors of images and texts."""
        recipe = cast(MatchRecipe, reference.folder.recipe)
        return matcher_parity(reference, exported, recipe, recipe.data.asked, request)

    def shapes(self, predictor: Matcher, given: str) -> list[ShapeLine]:
        """Walk through the vector of an image, if it is the path of one, or else of a text."""
        if Path(given).suffix.lower() in SUFFIXES:
            return walk(predictor.model, lambda: predictor.embed_images([given]))
        return walk(predictor.model, lambda: predictor.embed_texts([given]))

    def validation_images(self, recipe: MatchRecipe) -> ImageSet:
        """Read them."""
        return captioned_split("valid", recipe).images

    def card(self, folder: ModelFolder) -> Section:
        """Both uses."""
        what = "Puts images and texts into one space: finds images by words or by an image."
        return Section(what, f"manyheads index IMAGES --model {folder.name} --out images.index")


PIPELINE = MatchPipeline()
