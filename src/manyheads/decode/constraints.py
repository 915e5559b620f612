"""Rules of a search: changes of the log-probabilities of the next tokens.

A rule is called at every step, between the model and the choice of the next tokens. Rules are
applied in the order in which they are given.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch

from manyheads.errors import ManyheadsError
from manyheads.nn.shapes import Prefixes, Scores


@runtime_checkable
class Rule(Protocol):
    """Changes the log-probabilities of the next tokens."""

    def __call__(self, scores: Scores, prefixes: Prefixes, sentences: Sequence[int]) -> Scores:
        """Return log-probabilities after the rule; it may write into those it is given.

        Args:
            scores: log-probabilities of the next token.
            prefixes: the output so far, without the start token; of an output that has ended, and
                is still in the batch, any tokens behind its end.
            sentences: of which sentence of the batch each row is.
        """


def apply_rules(
    rules: Sequence[Rule], scores: Scores, prefixes: Prefixes, sentences: Sequence[int], *, end: int
) -> Scores:
    """Apply rules in their order; an output without any allowed token ends there, at no cost.

    Raises:
        ManyheadsError: the model's scores are nan.
    """
    if scores[..., 0].isnan().any():  # one is enough: a nan logit makes its whole softmax nan
        raise ManyheadsError(
            "The model gives nan instead of probabilities: its weights are damaged, or too large "
            "for its type of numbers. Copy its folder again, or train it anew."
        )
    for rule in rules:
        scores = rule(scores, prefixes, sentences)
    if rules:
        stuck = ~(scores.amax(dim=-1) > -torch.inf)  # also true of nan
        scores[stuck] = -torch.inf
        scores[..., end] = scores[..., end].masked_fill(stuck, 0.0)
    return scores


class SuppressTokens:
    """Suppress tokens, such as the padding token of Marian's models."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self.tokens = list(tokens)

    def __call__(self, scores: Scores, prefixes: Prefixes, sentences: Sequence[int]) -> Scores:
        """Set their probability to 0."""
        scores[..., self.tokens] = -torch.inf
        return scores


class Renormalise:
    """Renormalise after tokens were banned: probabilities sum to 1 again."""

    def __call__(self, scores: Scores, prefixes: Prefixes, sentences: Sequence[int]) -> Scores:
        """Divide by their sum."""
        return scores.log_softmax(dim=-1)


class MinLength:
    """Ban the end token before this many tokens."""

    def __init__(self, length: int, *, end: int) -> None:
        self.length = length
        self.end = end

    def __call__(self, scores: Scores, prefixes: Prefixes, sentences: Sequence[int]) -> Scores:
        """Ban the end token while the output is too short."""
        if prefixes.shape[2] < self.length:
            scores[..., self.end] = -torch.inf
        return scores


class NoRepeatNgram:
    """Ban repeated n-grams (Paulus et al. 2018, section 2.5, with n = 3)."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, scores: Scores, prefixes: Prefixes, sentences: Sequence[int]) -> Scores:
        """Ban every token that would complete an n-gram for the second time."""
        length = prefixes.shape[2]
        if length < self.size:
            return scores
        ngrams = prefixes.unfold(2, self.size, 1)  # sentence beam place size
        last = prefixes[:, :, None, length - self.size + 1 :]  # what the next token would complete
        row, beam, place = (ngrams[..., :-1] == last).all(dim=-1).nonzero(as_tuple=True)
        scores[row, beam, ngrams[row, beam, place, -1]] = -torch.inf
        return scores


class ForcedPrefix:
    """Force the first tokens of every output; the other rules apply behind them only.

    The first `given` of them cost nothing: a model that is told the language of its output has not
    learned how probable it is.
    """

    def __init__(
        self, prefixes: Sequence[Sequence[int]], rules: Sequence[Rule] = (), *, given: int = 0
    ) -> None:
        self.prefixes = prefixes
        self.rules = rules
        self.given = given

    def __call__(self, scores: Scores, prefixes: Prefixes, sentences: Sequence[int]) -> Scores:
        """Ban all but the forced token; unless given, its probability stays the model's."""
        length = prefixes.shape[2]
        forced = [row for row, n in enumerate(sentences) if length < len(self.prefixes[n])]
        tokens = [self.prefixes[sentences[row]][length] for row in forced]
        kept = scores[forced, :, tokens]
        if length < self.given:
            kept = torch.zeros_like(kept)
        for rule in self.rules:
            scores = rule(scores, prefixes, sentences)
        scores[forced] = -torch.inf
        scores[forced, :, tokens] = kept
        return scores


class ForcedEnd:
    """Force the end token at the length limit, at no cost (as Marian's models expect)."""

    def __init__(self, max_lengths: Sequence[int], *, end: int) -> None:
        self.max_lengths = max_lengths
        self.end = end

    def __call__(self, scores: Scores, prefixes: Prefixes, sentences: Sequence[int]) -> Scores:
        """Give the end token probability 1 where only one more token fits."""
        length = prefixes.shape[2] + 1  # with the next token
        last = [row for row, n in enumerate(sentences) if length == self.max_lengths[n]]
        scores[last] = -torch.inf
        scores[last, :, self.end] = 0.0
        return scores
