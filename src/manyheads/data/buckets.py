"""The batch plan: no work on padding, and nothing to store.

Sentences of like length share a batch. The plan of an epoch is a pure function of the seed, the
epoch and the lengths, so a run resumes in the middle of one by counting batches.
"""

import numpy as np

from manyheads.streams import generator


def length_buckets(
    source: np.ndarray, target: np.ndarray, max_tokens: int, *, seed: int, epoch: int
) -> list[np.ndarray]:
    """Divide pairs into batches of at most max_tokens tokens a side, padding included.

    Args:
        source: tokens of each source.
        target: tokens of each target.
        max_tokens: limit on (pairs in the batch) x (its longest sentence of either side).
        seed: of the run.
        epoch: another order each epoch.

    Returns:
        Indices of the pairs of each batch, batches in random order. A pair longer than max_tokens
        is a batch by itself.
    """
    random = generator(seed, "order", epoch)
    longest = np.maximum(source, target)
    # Ties in random order, so that batches differ from epoch to epoch.
    order = np.lexsort((random.random(len(source)), source + target, longest))
    longest = longest[order]
    batches, first = [], 0
    while first < len(order):
        # Sorted, so n pairs from the first on take n x the length of the n-th, and n + 1 take more.
        candidates = longest[first : first + max_tokens // max(1, int(longest[first]))]
        taken = np.arange(1, len(candidates) + 1) * candidates
        last = first + max(1, int(np.searchsorted(taken, max_tokens, side="right")))
        batches.append(order[first:last])
        first = last
    random.shuffle(batches)
    return batches


def shuffled(count: int, batch_size: int, *, seed: int, epoch: int) -> list[np.ndarray]:
    """Divide examples of equal size into batches, in another order each epoch."""
    order = generator(seed, "order", epoch).permutation(count)
    return [order[first : first + batch_size] for first in range(0, count, batch_size)]
