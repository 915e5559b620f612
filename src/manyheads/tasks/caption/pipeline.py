"""Captions, whole: images with texts in, a captioner out; exact match and chrF."""

from pathlib import Path
from typing import Any, cast

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.asks.look_request import LookRequest
from manyheads.engines.parity import Parity
from manyheads.errors import UsageError
from manyheads.fit.inputs import digest, images_digest, readable_captions
from manyheads.lens.trace.shapes import ShapeLine
from manyheads.look.refusals import refuse_for_images
from manyheads.measure.score import refuse_report, scored
from manyheads.predict.image_inputs import named
from manyheads.predict.pipeline import Explanation, Pipeline, Prepared, Say, Section
from manyheads.project.folder import ModelFolder, write_preprocessing, write_vocabularies
from manyheads.project.vocabulary import SHARED, learn_tokenizer, load_vocabularies
from manyheads.recipe_data.caption_splits import captioned_splits
from manyheads.tasks.caption.evaluation import captions_to_measure, measure_captions
from manyheads.tasks.caption.look import explain_caption, shapes_of_caption
from manyheads.tasks.caption.parity import captioner_parity
from manyheads.tasks.caption.predictor import Captioner
from manyheads.tasks.caption.recipe import CaptionRecipe
from manyheads.tasks.caption.task import CaptionTask
from manyheads.train.device import best_device


class CaptionPipeline(Pipeline[CaptionRecipe, Captioner]):
    """Images with texts in, a captioner out."""

    task = "caption"
    recipe = CaptionRecipe
    predictor = Captioner
    forward = ("images", "target", "owners", "scored", "readout")
    members = ("config", "start", "step", "reorder", "keep")

    def prepare(self, recipe: CaptionRecipe, out: Path, say: Say) -> Prepared:
        """Read images and captions; learn the vocabulary, or take that of the run."""
        train, valid = readable_captions(*captioned_splits(recipe), recipe, out, say)
        languages = list(dict.fromkeys(train.languages))
        found = load_vocabularies(out)
        if not found:
            say(f"learning a vocabulary from {len(train.texts):,} captions")
            found = {SHARED: learn_tokenizer(train.texts, recipe.tokenizer, languages)}
        tokenizer = found[SHARED]
        task = CaptionTask(
            train,
            valid,
            tokenizer,
            recipe.image,
            recipe.augment,
            recipe.train,
            recipe.evaluate,
            seed=recipe.seed,
            device=best_device(),
        )
        say(
            f"{len(train):,} images, {len(train.texts):,} captions in {', '.join(languages)}; "
            f"{len(valid):,} images to validate on"
        )
        if task.left_out:
            say(
                f"left out {task.left_out:,} captions, longer than train.max_length = "
                f"{recipe.train.max_length} tokens"
            )

        def write(folder: Path) -> None:
            write_vocabularies(folder, found)
            write_preprocessing(folder, recipe.image)

        texts = digest(*train.texts, *train.languages, *valid.texts, *valid.languages)
        return Prepared(
            task,
            recipe.config(vocabulary=len(tokenizer)),
            write,
            {"data": digest(images_digest(train.images, valid.images), texts)},
        )

    def evaluate(self, predictor: Captioner, request: EvaluateRequest) -> dict[str, Any]:
        """Score one caption for each image and language."""
        refuse_report(predictor.folder.name, request)
        recipe = cast(CaptionRecipe, predictor.folder.recipe)
        captions, head = captions_to_measure(recipe, request)
        scores, more = measure_captions(
            predictor, captions, recipe.evaluate.metrics, recipe.data.root
        )
        return head | scored(scores) | more

    def parity(self, reference: Captioner, exported: Captioner, request: ParityRequest) -> Parity:
        """Compare captions, and scores of the tokens of given ones."""
        return captioner_parity(reference, exported, reference.folder.recipe, request)

    def look(self, predictor: Captioner, request: LookRequest) -> Explanation:
        """Show each word of the caption on the image."""
        refuse_for_images(predictor, request, writes=True)
        if request.target is not None or request.baseline != "black":
            raise UsageError(
                f"{predictor.folder.name} has no classes to explain: leave out `target` and "
                "`baseline`; `reference` takes a caption of your own."
            )
        text, view, pixels = explain_caption(
            predictor, request.given, request.language or "", request.reference
        )
        return Explanation({"path": named(request.given), "answer": text}, view, pixels)

    def shapes(self, predictor: Captioner, given: str) -> list[ShapeLine]:
        """Walk through a caption."""
        refuse_for_images(predictor, LookRequest(given=given))
        return shapes_of_caption(predictor, Path(given))

    def card(self, folder: ModelFolder) -> Section:
        """Languages, and the command."""
        use = f"manyheads caption --model {folder.name} image.png"
        if folder.recipe.origin is not None:
            limits = "Trained elsewhere; its makers know on what, and what to expect."
            return Section("Writes a text for an image.", use, limits)
        languages = list(cast(Any, folder.tokenizers().target).languages)
        return Section(f"Writes a text for an image, in: {', '.join(languages)}.", use)


PIPELINE = CaptionPipeline()
