"""Tagging, whole: Korean word spacing, an answer a character."""

from pathlib import Path
from typing import Any, cast

from torch import nn

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.data.text.sentences import Sentences
from manyheads.data.tokenizers.characters import Characters
from manyheads.data.tokenizers.spacing import without_spaces
from manyheads.doctor.run_inspection import RunInspection
from manyheads.fit.inputs import digest, refuse_longer
from manyheads.measure.score import refuse_report, scored, sentences_to_measure
from manyheads.measure.text_metrics import Score
from manyheads.predict.task_pipeline import Prepared, Say
from manyheads.project.folder import ModelFolder, read_json, write_json
from manyheads.recipe_data.sentence_splits import training_sentences
from manyheads.tasks.tag.predictor import WordSpacer
from manyheads.tasks.tag.recipe import TagRecipe
from manyheads.tasks.tag.task import Spacing
from manyheads.tasks.tag.task import measure as measure_spacing
from manyheads.tokenwise.token_pipeline import TokenPipeline, say_left_out
from manyheads.tokenwise.token_task import Examples, TokenTask


class TagPipeline(TokenPipeline[TagRecipe, WordSpacer]):
    """Spaced sentences in, a word spacer out."""

    task = "tag"
    recipe = TagRecipe
    predictor = WordSpacer
    what = "Spaces Korean text: predicts for each character whether a space follows it."
    use = 'manyheads tag --model {name} "..."'
    classes = ("together", "space")
    metric = "f1"

    def reader(self, run: RunInspection | ModelFolder) -> Characters:
        """Load the characters."""
        return run.characters()

    def examples(
        self, recipe: TagRecipe, lines: Sentences, reader: Characters, *, train: bool
    ) -> Spacing:
        """Predict for each character whether a space follows it."""
        return Spacing(lines, reader, recipe.train.max_length if train else None)

    def measure(self, model: nn.Module, examples: Examples, max_tokens: int) -> dict[str, float]:
        """Measure spaces."""
        return measure_spacing(model, examples, max_tokens)

    def prepare(self, recipe: TagRecipe, out: Path, say: Say) -> Prepared:
        """Read the sentences; list their characters, or take those of the run."""
        train, valid = training_sentences(recipe.data)
        stored = out / "characters.json"
        if stored.exists():
            characters = Characters(read_json(stored))
        else:
            characters = Characters.learn(without_spaces(line)[0] for line in train.lines)
        examples = self.examples(recipe, train, characters, train=True)
        say(f"{len(train):,} lines, {len(characters):,} characters")
        say_left_out(examples, recipe.train.max_length, say)
        measured = self.examples(recipe, valid, characters, train=False)
        task = TokenTask(examples, measured, recipe.train, measure_spacing, seed=recipe.seed)
        config = recipe.config(vocabulary=len(characters))
        refuse_longer(config, examples.lengths.max(), measured.lengths.max())
        return Prepared(
            task,
            config,
            lambda folder: write_json(folder / "characters.json", characters.alphabet),
            {"data": digest(*train.hashes, *valid.hashes)},
        )

    def evaluate(self, predictor: WordSpacer, request: EvaluateRequest) -> dict[str, Any]:
        """Score the spaces."""
        refuse_report(predictor.folder.name, request)
        recipe = cast(TagRecipe, predictor.folder.recipe)
        lines, head = sentences_to_measure(recipe.data, request)
        examples = self.examples(recipe, lines, predictor.characters, train=False)
        measured = measure_spacing(predictor.model, examples, recipe.train.max_tokens)
        signatures = {
            "f1": "of the spaces, all lines together",
            "exact": "share of lines without a mistake",
            "accuracy": "share of characters",
            "loss": "mean cross-entropy per character, natural logarithm",
        }
        scores = {name: Score(measured[name], sign) for name, sign in signatures.items()}
        return head | {"lines": len(lines)} | scored(scores)


PIPELINE = TagPipeline()
