"""A run folder as the doctor sees it: finished or not, with weights or without."""

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from manyheads.app.folder import ModelFolder, read_json
from manyheads.app.model import build_model
from manyheads.app.paths import find_model
from manyheads.app.recipe import ClassifyRecipe, Recipe, TranslateRecipe, read_recipe
from manyheads.app.vocabulary import load_vocabularies, tokenizers
from manyheads.data.characters import Characters
from manyheads.data.tokenizer import Tokenizers
from manyheads.errors import FolderError
from manyheads.streams import stream
from manyheads.train.checkpoint import checkpoints, newest, restore
from manyheads.train.device import best_device
from manyheads.train.history import read_history


class Patient:
    """A run folder, opened without any demand but a recipe."""

    def __init__(self, name: str) -> None:
        """Open a shipped model by name, or a run by its path.

        Raises:
            NotFoundError: there is no such folder.
            FolderError: it is damaged, or no run folder.
        """
        self.path = find_model(name)
        self.folder: ModelFolder | None = None
        if (self.path / "manyheads.json").exists() or not (self.path / "recipe.toml").exists():
            self.folder = ModelFolder(self.path)  # says what is wrong with one that is none
        self.recipe: Recipe = (
            self.folder.recipe if self.folder else read_recipe(self.path / "recipe.toml")
        )
        self.history = read_history(self.path / "metrics.jsonl")

    @property
    def converted(self) -> bool:
        """Whether the model was trained elsewhere: its training is not known."""
        recipe = self.recipe
        return isinstance(recipe, TranslateRecipe | ClassifyRecipe) and bool(recipe.converted)

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
        """Build the model with its newest stored weights; None if none were stored yet.

        Raises:
            FolderError: the weights cannot be read, or are those of another model.
        """
        if self.folder is not None:
            return self.folder.model().to(best_device())
        stored = checkpoints(self.path / "state")
        if not stored:
            return None
        file = stored[-1] / "model.safetensors"
        model = build_model(self.recipe, self.recipe.config())
        try:
            restore(model, load_file(file), file)
        except (SafetensorError, OSError) as error:
            raise FolderError(f"{file} cannot be read: {error}.") from error
        return model.eval().to(best_device())

    def first_model(self) -> nn.Module:
        """Build the model as it was before the first step: initial weights are a pure function."""
        torch.manual_seed(stream(self.recipe.seed, "init"))
        return build_model(self.recipe, self.recipe.config())

    def tokenizers(self) -> Tokenizers:
        """Load what turns text into tokens.

        Raises:
            FolderError: it is not there.
        """
        if self.folder is not None:
            return self.folder.tokenizers()
        found = load_vocabularies(self.path)
        if not found:
            raise FolderError(f"{self.path} has no tokenizer.model. Copy the whole folder again.")
        return tokenizers(found)

    def characters(self) -> Characters:
        """Load the characters that a tagger knows."""
        return Characters(read_json(self.path / "characters.json"))
