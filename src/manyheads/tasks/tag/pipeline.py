"""Tagging, whole: Korean word spacing, an answer a character."""

from pathlib import Path
from typing import ClassVar

from torch import Tensor

from manyheads.data.text.corpus import Sentences
from manyheads.data.tokenizers.characters import Characters
from manyheads.data.tokenizers.spacing import without_spaces
from manyheads.doctor.run_inspection import RunInspection
from manyheads.predict.task_pipeline import Say
from manyheads.project.folder import ModelFolder, read_json, write_json
from manyheads.tasks.tag.predictor import WordSpacer
from manyheads.tasks.tag.recipe import TagRecipe
from manyheads.tasks.tag.task import Spacing, measure
from manyheads.tokenwise.token_pipeline import TokenPipeline


class TagPipeline(TokenPipeline[TagRecipe, WordSpacer]):
    """Spaced sentences in, a word spacer out."""

    task = "tag"
    recipe = TagRecipe
    predictor = WordSpacer
    what = "Spaces Korean text: predicts for each character whether a space follows it."
    use = 'manyheads tag --model {name} "..."'
    classes = ("together", "space")
    metric = "f1"
    signatures: ClassVar[dict[str, str]] = {
        "f1": "of the spaces, all lines together",
        "exact": "share of lines without a mistake",
        "accuracy": "share of characters",
        "loss": "mean cross-entropy per character, natural logarithm",
    }
    measured = staticmethod(measure)

    def reader(self, run: RunInspection | ModelFolder) -> Characters:
        """Load the characters."""
        return run.characters()

    def examples(
        self, recipe: TagRecipe, lines: Sentences, reader: Characters, *, train: bool
    ) -> Spacing:
        """Predict for each character whether a space follows it."""
        return Spacing(lines, reader, recipe.train.max_length if train else None)

    def shown(
        self, predictor: WordSpacer, text: str, targets: Tensor, best: Tensor
    ) -> tuple[str, str]:
        """Write the text with its own spaces, and with those of the model."""
        return text, predictor.answers([text])[0]

    def learn(self, recipe: TagRecipe, train: Sentences, out: Path, say: Say) -> Characters:
        """Load the characters, or list those of the sentences."""
        stored = out / "characters.json"
        if stored.exists():
            characters = Characters(read_json(stored))
        else:
            characters = Characters.learn(without_spaces(line)[0] for line in train.lines)
        say(f"{len(train):,} lines, {len(characters):,} characters")
        return characters

    def write_reader(self, reader: Characters, folder: Path) -> None:
        """Write the characters."""
        write_json(folder / "characters.json", reader.alphabet)


PIPELINE = TagPipeline()
