"""Translation, whole: parallel text, an encoder-decoder, BLEU, and what looking shows."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from torch import nn

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.asks.look_request import LookRequest
from manyheads.data.text.corpus import Corpus
from manyheads.doctor.run_inspection import RunInspection
from manyheads.engines.engine import engine_name
from manyheads.engines.parity import Parity
from manyheads.fit.encoded_corpus import encoded_corpus
from manyheads.fit.inputs import digest, has_token_limit, refuse_longer
from manyheads.generation.special_ids import SpecialIds
from manyheads.lens.trace.shapes import ShapeLine
from manyheads.look.refusals import refuse_for_texts, word_figures
from manyheads.measure.score import refuse_among, scored
from manyheads.measure.text_metrics import TEXT_METRICS
from manyheads.predict.pipeline import Explanation, Pipeline, Prepared, Say, Section
from manyheads.project.folder import CACHE, ModelFolder, write_vocabularies
from manyheads.project.vocabulary import (
    learn_vocabularies,
    load_vocabularies,
    need_vocabularies,
    sizes,
    tokenizers,
)
from manyheads.recipe_data.pair_splits import corpus_split, training_corpus, with_joined_pairs
from manyheads.recipe_data.splits import reject_test_splits
from manyheads.tasks.translate.evaluation import corpus_to_measure, measure, measure_alignment
from manyheads.tasks.translate.examination import examine_translations
from manyheads.tasks.translate.initialize import load_pretrained, start_vocabularies
from manyheads.tasks.translate.look import explain_text, shapes_of_text
from manyheads.tasks.translate.parity import translation_parity
from manyheads.tasks.translate.predictor import Translator
from manyheads.tasks.translate.recipe import TranslateRecipe
from manyheads.tasks.translate.reference import reference_figure
from manyheads.tasks.translate.samples import PairSamples, mismatched, some_pairs
from manyheads.tasks.translate.task import TranslateTask
from manyheads.tasks.translate.word_alignment import reads_source
from manyheads.train.ranks import rank_and_world


class TranslatePipeline(Pipeline[TranslateRecipe, Translator]):
    """Sentence pairs in, a translator out."""

    task = "translate"
    recipe = TranslateRecipe
    predictor = Translator
    forward = ("source", "target", "scored", "readout")
    members = ("config", "start", "step", "reorder", "keep")

    def prepare(self, recipe: TranslateRecipe, out: Path, say: Say) -> Prepared:
        """Read the corpora; learn the vocabulary, or take that of the run or of [start]."""
        for name in recipe.evaluate.metrics:
            # A missing package is found before training.
            TEXT_METRICS[name](["text"], ["text"], recipe.data.target)
        corpus, valid = training_corpus(recipe.data, say), corpus_split("valid", recipe.data)
        reject_test_splits(corpus, valid)
        corpus = with_joined_pairs(corpus, recipe.augment.joined, recipe.seed)
        found = load_vocabularies(out)
        if not found:
            # A whole pass over a large corpus, for the rank that learns from it.
            first = rank_and_world()[0] == 0
            sources, targets = corpus.sample(recipe.seed) if first else ([], [])
            if recipe.start is not None and recipe.start.vocabulary == "theirs":
                say("taking over the vocabulary of the models to start from")
                found = start_vocabularies(recipe, recipe.start, recipe.tokenizer, sources, targets)
            else:
                kind = "a vocabulary" if recipe.tokenizer.shared else "two vocabularies"
                which = "" if isinstance(corpus, Corpus) else "a sample of "
                say(f"learning {kind} from {which}{len(sources):,} pairs")
                found = learn_vocabularies(sources, targets, recipe.tokenizer)
        config = recipe.config(**sizes(found))
        texts = recipe.tokenizer.sampling > 0 or recipe.augment.changes_pairs
        task = TranslateTask(
            corpus,
            valid,
            tokenizers(found),
            recipe.train,
            recipe.evaluate,
            seed=recipe.seed,
            ids=cast(SpecialIds, config),
            sampling=recipe.tokenizer.sampling,
            noise=recipe.augment,
            store=encoded_corpus(corpus, found, recipe.data, out / CACHE, say, texts=texts),
            language=recipe.data.target,
        )
        if task.left_out:
            say(
                f"left out {task.left_out:,} of {len(task.store):,} pairs, longer than "
                f"train.max_length = {recipe.train.max_length} tokens"
            )
        if has_token_limit(config):  # or the validation data would be encoded for nothing
            encoded = tokenizers(found).source.encode(valid.source)
            longest = max(len(tokens) + 1 for tokens in encoded)  # with the end
            refuse_longer(config, longest, *(side.max() for side in task.lengths))
        return Prepared(
            task,
            config,
            lambda folder: write_vocabularies(folder, found),
            {"data": digest(*corpus.hashes, *valid.hashes)},
        )

    def initialize(
        self, model: nn.Module, recipe: TranslateRecipe, out: Path
    ) -> dict[str, Any] | None:
        """Copy the weights of the models that [start] names."""
        if recipe.start is None:
            return None
        return load_pretrained(model, recipe, recipe.start, need_vocabularies(out))

    def evaluate(self, predictor: Translator, request: EvaluateRequest) -> dict[str, Any]:
        """Score translations; on validation data, set what is usual, and the head that aligns."""
        refuse_among(predictor.folder.name, request)
        recipe = cast(TranslateRecipe, predictor.folder.recipe)
        corpus, head = corpus_to_measure(recipe.data, request)
        metrics = [*recipe.evaluate.metrics, *request.text_metrics]
        valid = request.data is None and request.split == "valid"
        # What is usual is what torch answers, whatever runs the model later.
        keeps = not predictor.folder.shipped and engine_name(predictor.engine) == "torch"
        named = recipe.data.valid if valid and keeps else None
        outputs, scores, more = measure(predictor, corpus, metrics, request, named)
        if request.alignment:
            more["alignment"] = measure_alignment(predictor, corpus, outputs, named)
        return head | scored(scores) | more

    def parity(self, reference: Translator, exported: Translator, request: ParityRequest) -> Parity:
        """Compare translations, and scores of the tokens of given ones."""
        recipe = cast(TranslateRecipe, reference.folder.recipe)
        metric = recipe.evaluate.metrics[0]
        return translation_parity(reference, exported, recipe.data, metric, request)

    def after_training(self, predictor: Translator) -> EvaluateRequest:
        """Measure the alignment too, if the model attends to the source."""
        return EvaluateRequest(alignment=reads_source(predictor.model))

    def look(self, predictor: Translator, request: LookRequest) -> Explanation:
        """Show where the translation comes from, and what the request asks for besides."""
        given = refuse_for_texts(predictor, request, translates=True)
        text = predictor.read_source(given).text
        figures = word_figures(predictor, text, request)
        if request.reference is not None:
            figures.insert(0, reference_figure(predictor, text, request.reference))
        output, view = explain_text(predictor, text, integrated=request.integrated)
        told = {"text": text, "translation": output}
        return Explanation(told, replace(view, figures=[*figures, *view.figures]))

    def shapes(self, predictor: Translator, given: str) -> list[ShapeLine]:
        """Walk through a translation."""
        refuse_for_texts(predictor, LookRequest(given=given))
        return shapes_of_text(predictor, given)

    def samples(self, recipe: TranslateRecipe, run: RunInspection) -> PairSamples:
        """Take some pairs of both splits, and the same with the sources of other pairs."""
        corpora = training_corpus(recipe.data), corpus_split("valid", recipe.data)
        few = some_pairs(corpora[0]), some_pairs(corpora[1])
        config = replace(recipe.train, label_smoothing=0.0, r_drop=0.0)
        tokenizers = run.tokenizers()

        def task(pairs: Corpus) -> TranslateTask:
            return TranslateTask(
                pairs,
                pairs,
                tokenizers,
                config,
                recipe.evaluate,
                seed=recipe.seed,
                ids=cast(SpecialIds, recipe.config()),
                language=recipe.data.target,
            )

        return PairSamples(
            train=task(few[0]),
            valid=task(few[1]),
            sizes=(len(few[0]), len(few[1])),
            validation=len(corpora[1]),
            corpora=corpora,
            few=few,
            mismatched=(task(mismatched(few[0])), task(mismatched(few[1]))),
            write=lambda model, step, finished: examine_translations(
                model, few[1], tokenizers, recipe.decode, recipe, step, finished
            ),
        )

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
