"""Shared parts of the pipelines with one output per token: generate, fill and tag."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from torch import nn

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.asks.look_request import LookRequest
from manyheads.data.split_register import reject_test_split
from manyheads.data.text.sentences import Sentences
from manyheads.data.tokenizers.tokenizer import END, PAD, START, Tokenizer, TokenizerConfig
from manyheads.doctor.run_batches import LineWriter
from manyheads.doctor.run_inspection import RunInspection
from manyheads.engines.engine_parity import Parity
from manyheads.files import write_atomically
from manyheads.fit.inputs import digest, refuse_longer
from manyheads.lens.trace.module_shapes import ShapeLine
from manyheads.looking.refusals import refuse_for_texts, word_figures
from manyheads.measure.score import refuse_report, scored, sentences_to_measure
from manyheads.measure.text_metrics import Score
from manyheads.predict.task_pipeline import Explanation, Pipeline, Prepared, Say
from manyheads.predict.text_reader import TokenPredictor
from manyheads.project.base_recipe import Recipe
from manyheads.project.folder import ModelFolder
from manyheads.project.sentencepiece_files import learn_tokenizer
from manyheads.recipe_data.sentence_data import LanguageData, SentenceData
from manyheads.recipe_data.sentence_splits import sentences, training_sentences
from manyheads.tokenwise.line_samples import LineSamples, sample_lines
from manyheads.tokenwise.look_at_tokens import explain_tokens, shapes_of_tokens
from manyheads.tokenwise.token_parity import lines_to_compare, token_parity
from manyheads.tokenwise.token_task import METRICS, Examples, TokenTask, TokenTrainConfig, measure

P = TypeVar("P", bound=TokenPredictor)
L = TypeVar("L", bound=TokenPredictor)


class TokenRecipe(Recipe):
    """A recipe of a model with one output per token."""

    data: SentenceData
    train: TokenTrainConfig = TokenTrainConfig()


class LanguageRecipe(TokenRecipe):
    """A recipe of a language model."""

    data: LanguageData
    tokenizer: TokenizerConfig = TokenizerConfig()

    @property
    def metrics(self) -> Sequence[str]:
        """Without perplexity: it is larger where the model is worse, and is the loss again."""
        return [name for name in METRICS if name != "perplexity"]

    def derived(self) -> dict[str, int]:
        """Special ids."""
        return {"pad": PAD, "start": START, "end": END}


R = TypeVar("R", bound=TokenRecipe)
LR = TypeVar("LR", bound=LanguageRecipe)


class TokenPipeline(Pipeline[R, P]):
    """A task whose model has one output per token of a text."""

    forward = ("tokens", "scored", "readout")
    classes: ClassVar[tuple[str, ...]] = ()  # names of a tagger's classes
    metric: ClassVar[str] = "accuracy"  # what is compared of an engine, in points

    @abstractmethod
    def reader(self, run: RunInspection | ModelFolder) -> Any:
        """Load what splits the texts of a run or a model into tokens."""

    @abstractmethod
    def examples(self, recipe: R, lines: Sentences, reader: Any, *, train: bool) -> Examples:
        """Make examples to learn from (`train`), or to measure: always the same ones."""

    def measure(self, model: nn.Module, examples: Examples, max_tokens: int) -> dict[str, float]:
        """Measure a model on examples."""
        return measure(model, examples, max_tokens)

    def parity(self, reference: P, exported: P, request: ParityRequest) -> Parity:
        """Compare logits; texts that were given have no right answers."""
        recipe = cast(R, reference.folder.recipe)
        examples, name = self.compared(reference, request)
        return token_parity(
            reference,
            exported,
            examples,
            self.measure,
            None if request.texts else self.metric,
            name=name,
            max_tokens=recipe.train.max_tokens,
        )

    def compared(self, reference: P, request: ParityRequest) -> tuple[Examples, str]:
        """Read the lines to compare an engine on, and say where they are from.

        Longer ones than those that are trained on are left out.
        """
        recipe = cast(R, reference.folder.recipe)
        lines, name = lines_to_compare(recipe.data, request)
        return self.examples(recipe, lines, self.reader(reference.folder), train=True), name

    def look(self, predictor: P, request: LookRequest) -> Explanation:
        """Show what each output depends on."""
        text = refuse_for_texts(predictor, request)
        figures = word_figures(predictor, text, request)
        answer, view = explain_tokens(predictor, text, integrated=request.integrated)
        told = {"text": text, "answer": answer}
        return Explanation(told, replace(view, figures=[*figures, *view.figures]))

    def shapes(self, predictor: P, given: str) -> list[ShapeLine]:
        """Walk through one pass over a text."""
        refuse_for_texts(predictor, LookRequest(given=given))
        return shapes_of_tokens(predictor, given)

    def samples(self, recipe: R, run: RunInspection) -> LineSamples:
        """Take some lines of both splits."""
        reader, config = self.reader(run), replace(recipe.train, label_smoothing=0.0)

        def task(lines: Sentences) -> TokenTask:
            examples = self.examples(recipe, lines, reader, train=False)
            return TokenTask(examples, examples, config, lambda *_: {}, seed=recipe.seed)

        write = self.writer(recipe, reader)
        return sample_lines(recipe.data, task, classes=self.classes, write=write)

    def writer(self, recipe: R, reader: Any) -> LineWriter | None:
        """Make what examines the text that a model writes; None if it writes none."""
        return None


class LanguagePipeline(TokenPipeline[LR, L]):
    """A language model: sentences, a vocabulary, perplexity."""

    predicted: ClassVar[str]  # what is predicted, for signatures: "token"

    def reader(self, run: RunInspection | ModelFolder) -> Any:
        """Load the tokenizer."""
        return run.tokenizers().target

    def prepare(self, recipe: LR, out: Path, say: Say) -> Prepared:
        """Read the sentences; learn the vocabulary, or take that of the run."""
        train, valid, tokenizer = language_splits(recipe.data, recipe.tokenizer, out, say)
        examples = self.examples(recipe, train, tokenizer, train=True)
        say_left_out(examples, recipe.train.max_length, say)
        measured = self.examples(recipe, valid, tokenizer, train=False)
        config = recipe.config(vocabulary=len(tokenizer))
        refuse_longer(config, examples.lengths.max(), measured.lengths.max())
        return Prepared(
            TokenTask(examples, measured, recipe.train, measure, seed=recipe.seed),
            config,
            lambda folder: write_atomically(folder / "tokenizer.model", tokenizer.model),
            {"data": digest(*train.hashes, *valid.hashes)},
        )

    def evaluate(self, predictor: L, request: EvaluateRequest) -> dict[str, Any]:
        """Measure perplexity, loss and accuracy."""
        refuse_report(predictor.folder.name, request)
        recipe: Any = predictor.folder.recipe
        lines, head = sentences_to_measure(recipe.data, request)
        tokenizer = self.reader(predictor.folder)
        examples = self.examples(recipe, lines, tokenizer, train=False)
        measured = measure(predictor.model, examples, recipe.train.max_tokens)
        each, vocabulary = f"per {self.predicted}", f"vocabulary {len(tokenizer):,}"
        scores = {
            "perplexity": Score(measured["perplexity"], f"{each}, {vocabulary}"),
            "loss": Score(measured["loss"], f"mean cross-entropy {each}, natural logarithm"),
            "accuracy": Score(measured["accuracy"], f"share right {each}"),
        }
        return head | {"lines": len(lines)} | scored(scores)


def language_splits(
    data: LanguageData, tokenizer: TokenizerConfig, out: Path, say: Say
) -> tuple[Sentences, Sentences, Tokenizer]:
    """Read training and validation sentences; load the vocabulary from `out`, or learn it."""
    train, valid = training_sentences(data)
    stored = out / "tokenizer.model"
    if stored.exists():
        return train, valid, Tokenizer(stored.read_bytes())
    parts = [sentences(name, data) for name in data.vocabulary] or [train]
    for part in parts:
        reject_test_split(part.hashes, part.origin)
    say(f"learning a vocabulary from {sum(map(len, parts)):,} lines")
    lines = [line for part in parts for line in part.lines]
    return train, valid, learn_tokenizer(lines, tokenizer)


def say_left_out(examples: Examples, max_length: int, say: Say) -> None:
    """Report texts that are longer than the recipe allows."""
    if examples.left_out:
        say(
            f"left out {examples.left_out:,} of {len(examples.sentences):,} lines, longer than "
            f"train.max_length = {max_length} tokens"
        )
