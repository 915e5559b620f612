"""A character tokenizer: one token per character, for models that label every character."""

from collections import Counter
from collections.abc import Iterable
from itertools import chain

from manyheads.data.text.encoding import reject_surrogates

PAD, UNKNOWN = 0, 1
SPECIAL = 2  # ids in front of the characters


class Characters:
    """A vocabulary of characters, stored as `alphabet`."""

    def __init__(self, alphabet: str) -> None:
        self.alphabet = alphabet
        self._ids = {character: id for id, character in enumerate(alphabet, SPECIAL)}

    @classmethod
    def learn(cls, texts: Iterable[str], *, min_count: int = 2) -> "Characters":
        """Build a vocabulary of the characters with this count or more, most frequent first.

        With `min_count = 2` rare characters stay unknown, so that training includes unknown ones.
        """
        counts = Counter(chain.from_iterable(texts))
        often = [character for character, count in counts.items() if count >= min_count]
        return cls("".join(sorted(often, key=lambda each: (-counts[each], each))))

    def __len__(self) -> int:
        """Return the size of the vocabulary, with padding and the unknown character."""
        return SPECIAL + len(self.alphabet)

    def encode(self, text: str) -> list[int]:
        """Turn each character into its id."""
        reject_surrogates([text])
        return [self._ids.get(character, UNKNOWN) for character in text]

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids into characters: unknown ones into U+FFFD, padding into nothing."""
        return "".join(
            self.alphabet[id - SPECIAL] if id >= SPECIAL else "\ufffd" * (id == UNKNOWN)
            for id in ids
        )
