"""Subword regularisation: another random segmentation of a sentence in each epoch.

Kudo 2018, "Subword Regularization", and Provilkov et al. 2020, "BPE-Dropout". The draw is a pure
function of (seed, epoch, example). Noise on the texts is drawn here too, before segmentation.
"""

from collections.abc import Callable

import numpy as np

from manyheads.data.tokenizers.token_store import TokenStore
from manyheads.data.tokenizers.tokenizer import TextTokenizer, Tokenizer, Tokenizers
from manyheads.errors import RecipeError
from manyheads.streams import generator

Noise = Callable[[str, str, int], tuple[str, str]]  # (source, target, seed) to a changed pair
Rows = list[list[int]]  # token ids of each text
Segmentation = Callable[[str, int], list[int]]  # (text, seed) to token ids


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
        noise: Noise | None = None,
    ) -> None:
        """Draw the seeds; the store must have texts, and `alpha` is PairTokenizerConfig.sampling.

        With alpha 0, texts get their best segmentation. `noise` changes a pair of texts first. A
        segmentation of more than `max_length` tokens is replaced by the best one of the original.

        Raises:
            RecipeError: a tokenizer cannot sample segmentations.
        """
        self.store = store
        self.alpha = alpha
        self.segment = [_segmentation(tokenizer, alpha) for tokenizer in tokenizers]
        self.noise = noise
        self.max_length = max_length
        random = generator(seed, "subwords", epoch)
        self.seeds = random.integers(1 << 32, size=(len(store), 2), dtype=np.uint32)
        self.noise_seeds = generator(seed, "noise", epoch).integers(1 << 32, size=len(store))

    def __call__(self, indices: np.ndarray) -> tuple[Rows, Rows]:
        """Segment these examples; return the token ids of sources and targets."""
        best, texts = self.store.tokens(indices), self.store.texts(indices)
        drawn = texts
        if self.noise:
            pairs = zip(*texts, self.noise_seeds[indices].tolist(), strict=True)
            sources, targets = zip(*(self.noise(*pair) for pair in pairs), strict=True)
            drawn = list(sources), list(targets)
        seeds = self.seeds[indices].T.tolist()
        found: tuple[Rows, Rows] = ([], [])
        for ids, segment, *side in zip(found, self.segment, best, texts, drawn, seeds, strict=True):
            for old, text, changed, seed in zip(*side, strict=True):
                # The best segmentation of an unchanged text is known.
                new = old if text == changed and not self.alpha else segment(changed, seed)
                ids.append(new if len(new) <= self.max_length else old)
        return found


def _segmentation(tokenizer: TextTokenizer, alpha: float) -> Segmentation:
    if not alpha:
        return lambda text, _: tokenizer.encode([text])[0]
    if not isinstance(tokenizer, Tokenizer):
        raise RecipeError(
            "tokenizer.sampling is set, but this tokenizer has only one segmentation of a text: "
            "leave it out."
        )
    return lambda text, seed: tokenizer.sample(text, alpha, seed)
