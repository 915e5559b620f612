"""Subword regularisation: another random segmentation of a sentence in each epoch.

Kudo 2018, "Subword Regularization", and Provilkov et al. 2020, "BPE-Dropout". The draw is a pure
function of (seed, epoch, example).
"""

import numpy as np

from manyheads.data.tokenizers.token_store import TokenStore
from manyheads.data.tokenizers.tokenizer import SamplingTokenizer, TextTokenizer, Tokenizers
from manyheads.errors import RecipeError
from manyheads.streams import generator


class SubwordSampler:
    """The draws of one epoch: a seed for each side of every example, independent of batches."""

    def __init__(
        self,
        store: TokenStore,
        tokenizers: Tokenizers,
        alpha: float,
        *,
        max_length: int,
        seed: int,
        epoch: int,
    ) -> None:
        """Draw the seeds; the store must have texts, and `alpha` is PairTokenizerConfig.sampling.

        A segmentation of more than `max_length` tokens is replaced by the best one.

        Raises:
            RecipeError: a tokenizer cannot sample segmentations.
        """
        self.store = store
        self.tokenizers = [_sampling(tokenizer) for tokenizer in tokenizers]
        self.alpha = alpha
        self.max_length = max_length
        random = generator(seed, "subwords", epoch)
        self.seeds = random.integers(1 << 32, size=(len(store), 2), dtype=np.uint32)

    def __call__(self, indices: np.ndarray) -> tuple[list[list[int]], list[list[int]]]:
        """Segment these examples; return the token ids of sources and targets."""
        best, texts, seeds = self.store.tokens(indices), self.store.texts(indices), self.seeds
        source, target = (
            self._side(tokenizer, *parts)
            for tokenizer, *parts in zip(
                self.tokenizers, best, texts, seeds[indices].T.tolist(), strict=True
            )
        )
        return source, target

    def _side(
        self,
        tokenizer: SamplingTokenizer,
        best: list[list[int]],
        texts: list[str],
        seeds: list[int],
    ) -> list[list[int]]:
        drawn = [
            tokenizer.sample(text, self.alpha, seed)
            for text, seed in zip(texts, seeds, strict=True)
        ]
        return [
            new if len(new) <= self.max_length else old
            for new, old in zip(drawn, best, strict=True)
        ]


def _sampling(tokenizer: TextTokenizer) -> SamplingTokenizer:
    if not isinstance(tokenizer, SamplingTokenizer):
        raise RecipeError(
            "tokenizer.sampling is set, but this tokenizer has only one segmentation of a text: "
            "leave it out."
        )
    return tokenizer
