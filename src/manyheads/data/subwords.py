"""Subword regularisation: a sentence in other pieces each time it is seen.

Kudo 2018, "Subword Regularization", and Provilkov et al. 2020, "BPE-Dropout". The draw is a pure
function of (seed, epoch, example).
"""

import numpy as np

from manyheads.data.token_store import TokenStore
from manyheads.data.tokenizer import SamplingTokenizer, TextTokenizer, Tokenizers
from manyheads.errors import RecipeError
from manyheads.streams import generator


class SubwordSampler:
    """One epoch's draws: a seed for each side of every example, whatever batch it comes in."""

    def __init__(
        self,
        store: TokenStore,
        tokenizers: Tokenizers,
        alpha: float,
        *,
        longest: int,
        seed: int,
        epoch: int,
    ) -> None:
        """Draw the seeds.

        Args:
            store: with its texts.
            tokenizers: of both sides.
            alpha: as in PairTokenizerConfig.sampling.
            longest: what is drawn with more tokens is replaced by the best segmentation.
            seed: of the run.
            epoch: other segmentations each epoch.

        Raises:
            RecipeError: a tokenizer knows one segmentation only.
        """
        self.store = store
        self.tokenizers = [_sampling(tokenizer) for tokenizer in tokenizers]
        self.alpha = alpha
        self.longest = longest
        random = generator(seed, "subwords", epoch)
        self.seeds = random.integers(1 << 32, size=(len(store), 2), dtype=np.uint32)

    def __call__(self, indices: np.ndarray) -> tuple[list[list[int]], list[list[int]]]:
        """Segment these examples: token ids of sources and of targets."""
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
            new if len(new) <= self.longest else old for new, old in zip(drawn, best, strict=True)
        ]


def _sampling(tokenizer: TextTokenizer) -> SamplingTokenizer:
    if not isinstance(tokenizer, SamplingTokenizer):
        raise RecipeError(
            "tokenizer.sampling is set, but this vocabulary segments a text in one way only: "
            "leave it out."
        )
    return tokenizer
