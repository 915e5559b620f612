"""How rare a text's pieces are, by the scores that a vocabulary was learned with."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from manyheads.data.tokenizers.tokenizer import TextTokenizer, byte_pieces

SPACE = "▁"  # as sentencepiece writes it
UNKNOWN = "<unk>"


@runtime_checkable
class ScoredTokenizer(TextTokenizer, Protocol):
    """A tokenizer whose pieces have scores."""

    def score(self, token: int) -> float:
        """Return a piece's log-probability (unigram), or minus its rank (bpe); 0 if it has none."""


class Word(NamedTuple):
    """A part of a text up to the next space, and the cost of its pieces."""

    text: str
    cost: float


class PieceCosts:
    """Minus the score of each piece; what has no score costs as much as the rarest piece.

    Of a unigram vocabulary (Kudo 2018, equation 1) costs are nats, those of a text a bound of minus
    its log-probability.
    """

    def __init__(self, tokenizer: ScoredTokenizer) -> None:
        self.tokenizer = tokenizer
        scores = np.array([tokenizer.score(token) for token in range(len(tokenizer))])
        scores[list(_unknown(tokenizer))] = scores.min()
        self.costs: list[float] = (-scores).tolist()
        self.begins = [tokenizer.piece(t).startswith(SPACE) for t in range(len(tokenizer))]

    def __call__(self, text: str) -> float:
        """Add up the costs of a text."""
        return sum(self.costs[token] for token in self.tokenizer.encode([text])[0])

    def word_costs(self, tokens: Sequence[int]) -> list[float]:
        """Add up the costs of each word of a text, given its tokens."""
        found: list[float] = []
        for token in tokens:
            if self.begins[token] or not found:
                found.append(0.0)
            found[-1] += self.costs[token]
        return found

    def words(self, text: str) -> list[Word]:
        """Divide a text into words with their costs."""
        found: list[tuple[int, int, float]] = []
        for piece in self.tokenizer.pieces(text):
            if piece.text.startswith(SPACE) or not found:
                found.append((piece.begin, piece.begin, 0.0))
            begin, _, cost = found[-1]
            found[-1] = begin, piece.end, cost + self.costs[piece.id]
        return [Word(text[begin:end].strip(), cost) for begin, end, cost in found]


@lru_cache(maxsize=8)
def piece_costs(tokenizer: TextTokenizer) -> PieceCosts | None:
    """Return the costs of a vocabulary, computed once; None if its pieces have no scores."""
    return PieceCosts(tokenizer) if isinstance(tokenizer, ScoredTokenizer) else None


def has_unknown(tokenizer: TextTokenizer, tokens: Sequence[int]) -> bool:
    """Whether some of a text's tokens are none of the vocabulary's own pieces."""
    return not _unknown(tokenizer).isdisjoint(tokens)


def unknown_characters(tokenizer: TextTokenizer, text: str) -> list[str]:
    """List the characters of a text that the vocabulary does not have, in order."""
    unknown = _unknown(tokenizer)
    return [
        text[piece.begin : piece.end].strip()
        for piece in tokenizer.pieces(text)
        if piece.id in unknown and piece.begin < piece.end  # of several bytes only the last
    ]


@lru_cache(maxsize=8)
def _unknown(tokenizer: TextTokenizer) -> frozenset[int]:
    """Return the tokens of unknown characters: bytes, or the unknown token of Marian's models."""
    named = (token for token in range(len(tokenizer)) if tokenizer.piece(token) == UNKNOWN)
    return frozenset([*named, *dict(byte_pieces(tokenizer))])
