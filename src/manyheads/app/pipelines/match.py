"""Matching, whole: images with texts in, two towers out; recall in both directions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

from torch import Tensor

from manyheads.app.data.captioned import captioned_split, captioned_splits
from manyheads.app.data.encoder_recipe import EncoderRecipe
from manyheads.app.data.tables import CaptionData, Columns, Language
from manyheads.app.engines.parity import Parity
from manyheads.app.evaluate.image_parity import matcher_parity
from manyheads.app.evaluate.matches import matches_to_measure, measure_matches, queries_of
from manyheads.app.evaluate.score import refuse_report, scored
from manyheads.app.pipeline import Pipeline, Prepared, Say, Section
from manyheads.app.predictors.matcher import Matcher
from manyheads.app.project.folder import ModelFolder, write_preprocessing, write_vocabularies
from manyheads.app.project.vocabulary import SHARED, learn_tokenizer, load_vocabularies
from manyheads.app.train.inputs import digest, images_digest, readable_captions
from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.data.images.image_file import SUFFIXES
from manyheads.data.images.image_set import ImageSet
from manyheads.data.tokenizers.tokenizer import END, PAD, TokenizerConfig
from manyheads.lens.trace.shapes import ShapeLine, walk
from manyheads.tasks.match import RANKS, MatchTask, MatchTrainConfig
from manyheads.train.device import best_device


class MatchData(CaptionData):
    """Images with texts; what is measured may ask with other texts than it learned."""

    # For each language, the columns of the texts that are searched for; those of `texts` if empty.
    queries: Mapping[Language, Columns] = {}

    @property
    def asked(self) -> "MatchData":
        """The same data with the texts of the queries."""
        return self.model_copy(update={"texts": self.queries}) if self.queries else self


class MatchRecipe(EncoderRecipe):
    """A recipe with task = "match"."""

    task: Literal["match"]
    data: MatchData
    tokenizer: TokenizerConfig = TokenizerConfig()
    train: MatchTrainConfig = MatchTrainConfig()

    @property
    def metrics(self) -> Sequence[str]:
        """Recall of texts and of images; with several languages, of the texts of each."""
        ways = [f"{way}_{k}" for way in ("text_to_image", "image_to_text") for k in RANKS]
        languages = list(self.data.asked.texts)
        each = [f"text_to_image_{k}_{code}" for code in languages for k in RANKS]
        return [*ways, *(each if len(languages) > 1 else [])]

    def derived(self) -> dict[str, Any]:
        """Special ids; a converted model has its own."""
        return {} if self.converted else {"pad": PAD, "end": END}


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
