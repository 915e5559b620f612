"""The predictor of a tagger: Korean text without spaces in, the same text with them out."""

from collections.abc import Sequence

from manyheads.asks.load_options import LoadOptions
from manyheads.asks.tag_request import TagAnswer, TagRequest
from manyheads.data.tokenizers.spacing import TAGS, with_spaces, without_spaces
from manyheads.predict.text_reader import (
    TextInput,
    TextPredictor,
    TokenOutput,
    TokenPredictor,
    check_texts,
)
from manyheads.project.folder import ModelFolder
from manyheads.tasks.tag.task import SpacedCharacter, tag


class WordSpacer(TextPredictor, TokenPredictor):
    """Call it with a text or a list of texts."""

    request = TagRequest

    def __init__(self, folder: ModelFolder, options: LoadOptions = LoadOptions()) -> None:
        super().__init__(folder, options)
        self.characters = folder.characters()

    def read_tokens(self, text: str) -> TextInput:
        """Split a text into its characters, without spaces."""
        characters = without_spaces(text)[0]
        spans = [[place, place + 1] for place, sign in enumerate(text) if not sign.isspace()]
        return TextInput(self.characters.encode(characters), list(characters), [*spans])

    def outputs(self, text: str, ids: Sequence[int], best: Sequence[int]) -> TokenOutput:
        """Give the tag of every character."""
        return TokenOutput(list(best), [TAGS[tag] for tag in best], self(text))

    def answers(self, texts: Sequence[str]) -> list[str]:
        """Space each text anew: spaces that are there already are not looked at."""
        return [spaced(tagged) for tagged in self.tag(texts)]

    def respond(self, request: TagRequest) -> list[TagAnswer]:
        """Answer a request: one answer for each of its texts."""
        return [
            TagAnswer(
                source=text,
                text=spaced(tagged),
                characters=tuple(character for character, _ in tagged),
                space=tuple(round(probability, 4) for _, probability in tagged),
                notes=self._unknown(tagged),
            )
            for text, tagged in zip(request.texts, self.tag(request.texts), strict=True)
        ]

    def _unknown(self, tagged: Sequence[SpacedCharacter]) -> tuple[str, ...] | None:
        known = {*self.characters.alphabet}
        unknown = dict.fromkeys(character for character, _ in tagged if character not in known)
        listed = ", ".join(map(repr, unknown))
        return (f"characters that the vocabulary does not have: {listed}.",) if listed else None

    def tag(self, texts: Sequence[str]) -> list[list[SpacedCharacter]]:
        """Say for every character of each text how likely a space follows it."""
        check_texts(texts)
        with self.engine.running():
            return tag(self.model, self.characters, texts)


def spaced(tagged: Sequence[SpacedCharacter]) -> str:
    """Put a space behind every character that is likelier followed by one than not."""
    characters = "".join(character for character, _ in tagged)
    return with_spaces(characters, [probability > 0.5 for _, probability in tagged])
