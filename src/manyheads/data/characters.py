"""Characters as tokens: one token a character, so that every one can have an answer of its own."""

from collections import Counter
from collections.abc import Iterable

from manyheads.data.surrogates import refuse_halves

PAD, UNKNOWN = 0, 1
SPECIAL = 2  # ids in front of the characters


class Characters:
    """A vocabulary of characters; `alphabet` is all there is to store."""

    def __init__(self, alphabet: str) -> None:
        self.alphabet = alphabet
        self._ids = {character: id for id, character in enumerate(alphabet, SPECIAL)}

    @classmethod
    def learn(cls, texts: Iterable[str], *, least: int = 2) -> "Characters":
        """Take every character that occurs at least so often, the most frequent first.

        With `least = 2` the rare ones stay unknown, so that the model meets unknown characters.
        """
        counts = Counter[str]()
        for text in texts:
            counts.update(text)
        often = [character for character, count in counts.items() if count >= least]
        return cls("".join(sorted(often, key=lambda each: (-counts[each], each))))

    def __len__(self) -> int:
        """Count the vocabulary, padding and the unknown character included."""
        return SPECIAL + len(self.alphabet)

    def encode(self, text: str) -> list[int]:
        """Turn each character into its id.

        Raises:
            DataError: the text holds half of a character.
        """
        refuse_halves([text])
        return [self._ids.get(character, UNKNOWN) for character in text]
