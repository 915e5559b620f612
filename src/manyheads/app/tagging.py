"""The predictor of a tagger: Korean text without spaces in, the same text with them out."""

from collections.abc import Sequence

from manyheads.app.folder import ModelFolder
from manyheads.app.recipe import TagRecipe
from manyheads.app.texts import OneOrMany
from manyheads.data.spacing import with_spaces
from manyheads.tasks.tag import SpacedCharacter, tag
from manyheads.train.device import best_device


class Spacer(OneOrMany):
    """Call it with a text or a list of texts. `model` is the torch module."""

    def __init__(self, folder: ModelFolder) -> None:
        assert isinstance(folder.recipe, TagRecipe)
        self.folder = folder
        self.characters = folder.characters()
        self.model = folder.model().to(best_device())

    def answers(self, texts: Sequence[str]) -> list[str]:
        """Space each text anew: spaces that are there already are not looked at."""
        return [spaced(found) for found in self.tag(texts)]

    def tag(self, texts: Sequence[str]) -> list[list[SpacedCharacter]]:
        """Say for every character of each text how likely a space follows it."""
        return tag(self.model, self.characters, texts)


def spaced(found: Sequence[SpacedCharacter]) -> str:
    """Put a space behind every character that is likelier followed by one than not."""
    characters = "".join(character for character, _ in found)
    return with_spaces(characters, [probability > 0.5 for _, probability in found])
