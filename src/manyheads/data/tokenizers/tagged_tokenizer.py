"""Sources that begin with a tag: one token that says how to translate, such as how politely.

Published for politeness (Sennrich et al. 2016, "Controlling Politeness in Neural Machine
Translation via Side Constraints") and for languages (Johnson et al. 2017).
"""

from collections.abc import Sequence
from functools import lru_cache

from manyheads.data.tokenizers.tokenizer import Piece, Tokenizer, Tokenizers
from manyheads.errors import UsageError, nearest


class TaggedTokenizer(Tokenizer):
    """Reads one of `tags` at the beginning of a text, `tag` for a text that has none.

    >>> tagged = TaggedTokenizer(model, ("<formal>", "<polite>"), "<polite>")  # doctest: +SKIP
    >>> [piece.text for piece in tagged.pieces("<formal> Hello")]  # doctest: +SKIP
    ['<formal>', '▁Hello']
    """

    def __init__(self, model: bytes, tags: Sequence[str], tag: str) -> None:
        """Load a serialised model whose vocabulary has the tags.

        Raises:
            FolderError: the bytes are not a sentencepiece model.
        """
        super().__init__(model)
        self.tags, self.tag = tuple(tags), tag
        self._ids = {each: int(self._processor.PieceToId(each)) for each in self.tags}

    def beginning(self, tag: str) -> "TaggedTokenizer":
        """Return a tokenizer for which this is the tag of texts without one.

        Raises:
            UsageError: the vocabulary does not have it.
        """
        found = next((each for each in self.tags if tag in (each, each.strip("<>"))), None)
        if found is None:
            known = [each.strip("<>") for each in self.tags]
            raise UsageError(
                f"The model has no tag {tag!r}{nearest(tag, known)}Its tags: {', '.join(known)}."
            )
        return TaggedTokenizer(self.model, self.tags, found)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Turn texts into token ids, the tag in front."""
        tags, rest = zip(*map(self._split, texts), strict=True) if texts else ((), ())
        found = zip(tags, super().encode(rest), strict=True)
        return [[self._ids[tag], *ids] for tag, ids in found]

    def sample(self, text: str, alpha: float, seed: int) -> list[int]:
        """Draw a segmentation, the tag in front."""
        tag, rest = self._split(text)
        return [self._ids[tag], *super().sample(rest, alpha, seed)]

    def pieces(self, text: str) -> list[Piece]:
        """Split a text into tokens; a tag that is not in the text covers no character of it."""
        tag, rest = self._split(text)
        shift = len(text) - len(rest)
        pieces = super().pieces(rest)
        moved = [Piece(p.text, p.id, p.begin + shift, p.end + shift) for p in pieces]
        return [Piece(tag, self._ids[tag], 0, shift), *moved]

    def _split(self, text: str) -> tuple[str, str]:
        for tag in self.tags:
            if text.startswith(tag):
                return tag, text[len(tag) :].lstrip(" ")
        return self.tag, text


@lru_cache(maxsize=16)
def with_tag(tokenizers: Tokenizers, tag: str) -> Tokenizers:
    """Let sources begin with this tag.

    Raises:
        UsageError: the model has no such tag, or none at all.
    """
    source, target = tokenizers
    if not isinstance(source, TaggedTokenizer):
        raise UsageError("The model reads no tags: leave `tag` out.")
    return Tokenizers(source.beginning(tag), target)
