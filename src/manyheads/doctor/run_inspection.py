"""A run folder for the doctor: finished or not, with weights or without."""

import torch
from torch import nn

from manyheads.data.tokenizers.characters import Characters
from manyheads.data.tokenizers.tokenizer import Tokenizers
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.base_recipe import Recipe, read_recipe
from manyheads.project.folder import ModelFolder, read_json
from manyheads.project.paths import find_model
from manyheads.project.sentencepiece_files import need_vocabularies, tokenizers
from manyheads.streams import stream
from manyheads.train.checkpoint import checkpoints, newest, read_model
from manyheads.train.device import find_device
from manyheads.train.history import read_history


class RunInspection:
    """A run folder, of which only the recipe must be there."""

    def __init__(self, name: str, device: str | None = None) -> None:
        """Open a shipped model by name, or a run by its path."""
        self.device = find_device(device)
        self.path = find_model(name)
        self.folder: ModelFolder | None = None
        if (self.path / "manyheads.json").exists() or not (self.path / "recipe.toml").exists():
            self.folder = ModelFolder(self.path)  # says what is wrong with one that is none
            self.recipe: Recipe = self.folder.recipe
        else:
            self.recipe = read_recipe(self.path / "recipe.toml", stored=True)
        self.history = read_history(self.path / "metrics.jsonl")

    @property
    def started(self) -> bool:
        """Whether it began with the weights of another model."""
        return getattr(self.recipe, "start", None) is not None

    @property
    def finished(self) -> bool:
        """Whether training went to its end, or was stopped early on purpose."""
        progress = newest(self.path / "state")
        if progress is not None and progress.stopped:
            return True
        if self.history.last_step >= self.recipe.train.steps:
            return self.history.non_finite is None
        # A folder without a state was given away as it is.
        return progress is None and self.folder is not None and self.history.non_finite is None

    def model(self) -> nn.Module | None:
        """Build the model with its newest stored weights; None if none were stored yet."""
        if self.folder is not None:
            return self.folder.model(finite=False).to(self.device)
        stored = checkpoints(self.path / "state")
        if not stored:
            return None
        model = pipeline_of(self.recipe).build(self.recipe, self.recipe.config())
        read_model(stored, model)
        return model.eval().to(self.device)

    def first_model(self) -> nn.Module:
        """Build the model as it was before the first step: initial weights are a pure function."""
        torch.manual_seed(stream(self.recipe.seed, "init"))
        return pipeline_of(self.recipe).build(self.recipe, self.recipe.config())

    def tokenizers(self) -> Tokenizers:
        """Load the tokenizers; without a model folder those that training stored already."""
        if self.folder is not None:
            return self.folder.tokenizers()
        return tokenizers(need_vocabularies(self.path), getattr(self.recipe, "tokenizer", None))

    def characters(self) -> Characters:
        """Load the characters of a tagger's vocabulary."""
        return Characters(read_json(self.path / "characters.json"))
