"""One word in several sentences: how its vector changes with its context (atlas T6).

Similarity by layer against that of different words: Ethayarajh 2019, "How Contextual are
Contextualized Word Representations?", sections 3.3 and 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from manyheads.lens.described_figures import figure
from manyheads.lens.labels import cut
from manyheads.lens.panels import Curve, Figure
from manyheads.lens.rounding import rounded

PAIRS = 6  # that have a curve each; more are shown by their mean
SENTENCES = 6  # whose attention is shown
TOKENS = 64  # of a sentence in a heat map


@dataclass(frozen=True, eq=False)
class Occurrence:
    """A word in one sentence, with the vectors and attention of a model."""

    text: str
    tokens: Sequence[str]
    own: Sequence[int]  # the tokens of the word
    others: Sequence[int]  # the tokens of other words
    layers: Sequence[tuple[str, Float[Tensor, "token dim"]]]  # the first: the input of layer 1
    attention: Sequence[tuple[str, Float[Tensor, " token"]]]  # of the word, by layer


def tokens_of(spans: Sequence[Sequence[int] | None], begin: int, end: int) -> list[int]:
    """Return the tokens that overlap the characters [begin, end)."""
    return [n for n, span in enumerate(spans) if span and span[0] < end and span[1] > begin]


def word_figures(word: str, occurrences: Sequence[Occurrence]) -> list[Figure]:
    """Compare a word's vectors between sentences by layer; plot its attention in each sentence."""
    figures = [_similarities(word, occurrences)] if len(occurrences) > 1 else []
    for number, each in enumerate(occurrences[:SENTENCES], 1):
        if each.attention:
            figures.append(_attention(word, number, each))
    return figures


def similarity(word: Float[Tensor, "token dim"], same: Float[Tensor, "other dim"]) -> float:
    """Cosine similarity of two words' vectors, each the mean over its tokens."""
    return F.cosine_similarity(word.double().mean(dim=0), same.double().mean(dim=0), dim=0).item()


def _similarities(word: str, occurrences: Sequence[Occurrence]) -> Figure:
    pairs = list(combinations(occurrences, 2))
    layers = range(len(occurrences[0].layers))
    tables = torch.tensor(
        [
            [similarity(*(each.layers[n][1][list(each.own)] for each in pair)) for n in layers]
            for pair in pairs
        ]
    )
    other = torch.tensor([[_different(pair, n) for n in layers] for pair in pairs])
    curves = [
        Curve.over(f"{word}, sentences {a} and {b}", rounded(row))
        for (a, b), row in zip(combinations(range(1, len(occurrences) + 1), 2), tables, strict=True)
    ]
    if len(pairs) > PAIRS:
        curves = [Curve.over(f"{word}, mean of {len(pairs)} pairs", rounded(tables.mean(dim=0)))]
    if not other.isnan().any():
        curves.append(Curve.over("other words, mean", rounded(other.mean(dim=0))))
    texts = "; ".join(f"{n}: {cut(each.text, 60)}" for n, each in enumerate(occurrences[:8], 1))
    facts = {"word": word, "count": len(occurrences), "sentences": texts}
    return figure("word-similarity", facts, curves=curves)


def _different(pair: Sequence[Occurrence], n: int) -> float:
    """Mean cosine similarity of all other tokens of two sentences; NaN without other tokens."""
    one, two = (F.normalize(each.layers[n][1][list(each.others)].double(), dim=1) for each in pair)
    return (one @ two.T).mean().item()


def _attention(word: str, number: int, occurrence: Occurrence) -> Figure:
    cut = f"; the first {TOKENS} tokens" if len(occurrence.tokens) > TOKENS else ""
    own = " and of its tokens" if len(occurrence.own) > 1 else ""
    return figure(
        "word-attention",
        {"word": word, "number": number, "own": own, "cut": cut},
        values=[rounded(weights[:TOKENS]) for _, weights in occurrence.attention],
        rows=[name for name, _ in occurrence.attention],
        columns=list(occurrence.tokens[:TOKENS]),
    )
