"""Shared parts of the pipelines with one output per token: generate, fill and tag."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.export_request import ParityRequest
from manyheads.asks.look_request import LookRequest
from manyheads.data.batching.batches import TokenBatch
from manyheads.data.even_sample import limited
from manyheads.data.split_register import reject_test_split
from manyheads.data.text.corpus import Sentences
from manyheads.data.tokenizers.tokenizer import END, PAD, START, Tokenizer, TokenizerConfig
from manyheads.doctor.run_batches import TEXTS, Write, random_sample
from manyheads.doctor.run_inspection import RunInspection
from manyheads.engines.engine_parity import Parity
from manyheads.files import write_atomically
from manyheads.fit.inputs import digest, refuse_longer
from manyheads.lens.trace.module_shapes import ShapeLine
from manyheads.looking.refusals import refuse_for_texts
from manyheads.looking.untrained import untrained
from manyheads.looking.word_comparison import compare_words
from manyheads.measure.outputs import OutputRow
from manyheads.measure.parity_inputs import data_to_compare, run_both
from manyheads.measure.score import ROWS, refuse_report, scored, sentences_to_measure
from manyheads.measure.text_metrics import Score
from manyheads.predict.task_pipeline import Explanation, Pipeline, Prepared, Say
from manyheads.predict.text_reader import TokenPredictor
from manyheads.project.base_recipe import Recipe
from manyheads.project.folder import ModelFolder
from manyheads.project.sentencepiece_files import SHARED, learn_tokenizer
from manyheads.recipe_data.named_splits import sentences, training_sentences
from manyheads.recipe_data.text_data import LanguageData, SentenceData
from manyheads.tokenwise.line_samples import LineSamples
from manyheads.tokenwise.look_at_tokens import explain_tokens, shapes_of_tokens
from manyheads.tokenwise.token_task import (
    METRICS,
    Examples,
    TokenTask,
    TokenTrainConfig,
    measure,
    predict_batches,
)

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

    signatures: ClassVar[dict[str, str]]  # how each score is defined, the headline first
    measured = staticmethod(measure)  # measures a model on examples

    @abstractmethod
    def reader(self, run: RunInspection | ModelFolder) -> Any:
        """Load what splits the texts of a run or a model into tokens."""

    @abstractmethod
    def learn(self, recipe: R, train: Sentences, out: Path, say: Say) -> Any:
        """Take the same from a run folder; learn it from texts if it is not there."""

    @abstractmethod
    def write_reader(self, reader: Any, folder: Path) -> None:
        """Write the same into a folder."""

    @abstractmethod
    def examples(self, recipe: R, lines: Sentences, reader: Any, *, train: bool) -> Examples:
        """Make examples to learn from (`train`), or to measure: always the same ones."""

    def prepare(self, recipe: R, out: Path, say: Say) -> Prepared:
        """Read the sentences; learn their tokens, or take those of the run."""
        train, valid = training_sentences(recipe.data)
        reader = self.learn(recipe, train, out, say)
        examples = self.examples(recipe, train, reader, train=True)
        if examples.left_out:
            say(
                f"left out {examples.left_out:,} of {len(train):,} lines, longer than "
                f"train.max_length = {recipe.train.max_length} tokens"
            )
        valid = limited(valid, recipe.evaluate.limit)
        measured = self.examples(recipe, valid, reader, train=False)
        config = recipe.config(vocabulary=len(reader))
        refuse_longer(config, examples.lengths.max(), measured.lengths.max())
        return Prepared(
            TokenTask(examples, measured, recipe.train, self.measured, seed=recipe.seed),
            config,
            partial(self.write_reader, reader),
            {"data": digest(*train.hashes, *valid.hashes)},
        )

    def evaluate(self, predictor: P, request: EvaluateRequest) -> dict[str, Any]:
        """Measure a model on lines."""
        refuse_report(predictor.folder.name, request)
        recipe = cast(R, predictor.folder.recipe)
        lines, head = sentences_to_measure(recipe.data, request)
        reader = self.reader(predictor.folder)
        examples = self.examples(recipe, lines, reader, train=False)
        values = self.measured(predictor.model, examples, recipe.train.max_tokens)
        scores = {
            name: Score(values[name], signature.format(vocabulary=len(reader)))
            for name, signature in self.signatures.items()
        }
        line = head | {"lines": len(lines)} | scored(scores)
        if request.outputs is not None:
            line[ROWS] = list(self.rows(predictor, examples, recipe.train.max_tokens))
        return line

    def rows(self, predictor: P, examples: Examples, max_tokens: int) -> Iterator[OutputRow]:
        """Give each line with its targets and the most probable outputs.

        The score is the geometric mean of the probabilities of the targets, in percent.
        """
        rows: dict[int, OutputRow] = {}
        for batch, scores in predict_batches(predictor.model, examples, max_tokens):
            counts = batch.scored.sum(dim=1).tolist()
            parts = zip(batch.targets.split(counts), scores.split(counts), strict=True)
            for index, (targets, own) in zip(batch.indices.tolist(), parts, strict=True):
                if len(targets):
                    best = own.max(dim=1)
                    text = examples.sentences.lines[index]
                    truth, answer = self.shown(predictor, text, targets, best.indices)
                    rows[index] = OutputRow(
                        input=text,
                        truth=[truth],
                        answer=answer,
                        score=100 * float(own.gather(1, targets[:, None]).mean().exp()),
                        right=bool((best.indices == targets).all()),
                        probability=float(best.values.mean().exp()),
                    )
        yield from (row for _, row in sorted(rows.items()))

    def shown(self, predictor: P, text: str, targets: Tensor, best: Tensor) -> tuple[str, str]:
        """Write the targets of a line and the outputs as texts: by default, their tokens."""
        (piece,) = predictor.pieces
        truth, answer = (" ".join(map(piece, each.tolist())) for each in (targets, best))
        return truth, answer

    def parity(self, reference: P, exported: P, request: ParityRequest) -> Parity:
        """Compare the logits of every token that is scored, and what is most probable there.

        Texts that were given have no right answers.
        """
        recipe = cast(R, reference.folder.recipe)
        most, (examples, name) = recipe.train.max_tokens, self.compared(reference, request)
        largest = gap = 0.0
        changed = 0
        seconds: dict[str, float] = {}
        for indices in examples.plan(most, seed=0, epoch=0):
            batch = examples.batch(indices, epoch=0)
            ours, theirs, took = run_both(reference, exported, partial(_logits, batch))
            seconds = {engine: seconds.get(engine, 0.0) + each for engine, each in took.items()}
            largest = max(largest, float(ours.abs().max()))
            gap = float(np.maximum(gap, float((ours - theirs).abs().max())))  # nan stays
            differ = torch.zeros_like(batch.scored)
            differ[batch.scored] = ours.argmax(dim=-1) != theirs.argmax(dim=-1)
            changed += int(differ.any(dim=1).sum())
        before = after = None
        if not request.texts:
            both = run_both(reference, exported, lambda p: self.measured(p.model, examples, most))
            before, after = (scores[self.metric] for scores in both[:2])
        return Parity(
            data=name,
            inputs=len(examples.kept),
            compared="logits",
            difference=gap / largest,
            changed=changed / len(examples.kept),
            metric=None if request.texts else self.metric,
            before=before,
            after=after,
            seconds=seconds,
        )

    def compared(self, reference: P, request: ParityRequest) -> tuple[Examples, str]:
        """Read the lines to compare an engine on, or texts that were given; say where from.

        They are from all over the data; longer ones than those that are trained on are left out.

        Raises:
            NotFoundError: the recipe's validation data are not here, and nothing else was given.
        """
        recipe = cast(R, reference.folder.recipe)
        if request.texts:
            lines, name = Sentences(request.texts, "texts given"), "texts given"
        else:
            read = partial(sentences_to_measure, recipe.data)
            lines, head = data_to_compare(read, request, "lines")
            lines, name = limited(lines, request.limit), head["data"]
        return self.examples(recipe, lines, self.reader(reference.folder), train=True), name

    def look(self, predictor: P, request: LookRequest) -> Explanation:
        """Show what each output depends on."""
        text = refuse_for_texts(predictor, request)
        shown = untrained(predictor) if request.untrained else predictor
        figures = compare_words(shown, text, request)
        answer, view = explain_tokens(
            predictor, text, integrated=request.integrated, fresh=request.untrained
        )
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

        splits = training_sentences(recipe.data)
        train, valid = (each.select(random_sample(len(each), TEXTS)) for each in splits)
        return LineSamples(
            train=task(train),
            valid=task(valid),
            sizes=(len(train), len(valid)),
            validation=len(splits[1]),
            lines=splits,
            classes=self.classes,
            write=self.writer(recipe, reader, valid),
        )

    def writer(self, recipe: R, reader: Any, lines: Sentences) -> Write | None:
        """Make what examines texts that a model begins as `lines` do; None if it writes none."""
        return None


@torch.inference_mode()
def _logits(batch: TokenBatch, predictor: TokenPredictor) -> Tensor:
    """Score the tokens of a batch."""
    logits: Tensor = predictor.model(batch.tokens, batch.scored)
    return logits.float()


class LanguagePipeline(TokenPipeline[LR, L]):
    """A language model: sentences, a vocabulary, perplexity."""

    signatures: ClassVar[dict[str, str]] = {
        "perplexity": "per token, vocabulary {vocabulary:,}",
        "loss": "mean cross-entropy per token, natural logarithm",
        "accuracy": "share right per token",
    }

    def reader(self, run: RunInspection | ModelFolder) -> Any:
        """Load the tokenizer."""
        return run.tokenizers().target

    def learn(self, recipe: LR, train: Sentences, out: Path, say: Say) -> Tokenizer:
        """Load the vocabulary, or learn it."""
        stored = out / SHARED
        if stored.exists():
            return Tokenizer(stored.read_bytes())
        data = recipe.data
        parts = [sentences(name, data) for name in data.vocabulary] or [train]
        for part in parts:
            reject_test_split(part.hashes, part.origin)
        say(f"learning a vocabulary from {sum(map(len, parts)):,} lines")
        return learn_tokenizer([line for part in parts for line in part.lines], recipe.tokenizer)

    def write_reader(self, reader: Tokenizer, folder: Path) -> None:
        """Write the vocabulary."""
        write_atomically(folder / SHARED, reader.model)
