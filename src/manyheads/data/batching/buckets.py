"""The batch plan of an epoch: sentences of similar length share a batch, to save padding.

The plan is a pure function of the seed, the epoch and the lengths: a run resumes in the middle of
an epoch by counting batches.
"""

from collections.abc import Sequence

import numpy as np

from manyheads.streams import generator


def length_buckets(
    source: np.ndarray, target: np.ndarray, max_tokens: int, *, seed: int, epoch: int
) -> list[np.ndarray]:
    """Divide pairs of these lengths into batches of at most max_tokens a side, padding included.

    The tokens of a batch are its pairs times its longest sentence of either side. Batches are in
    random order, another one in each epoch; a pair longer than max_tokens is a batch by itself.

    Returns:
        Indices of the pairs of each batch.
    """
    random = generator(seed, "order", epoch)
    longest = np.maximum(source, target)
    # Ties are ordered at random, so that batches differ from epoch to epoch.
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


def rank_part(batches: Sequence[np.ndarray], rank: int, world: int) -> list[np.ndarray]:
    """Take one process's part of every batch: each world-th example, from number `rank` on.

    The batches do not depend on the number of processes, and each process has a part of every one,
    so together they make the same updates as one process. Neighbours in a batch are of like length:
    in turns, every part gets its share of the long ones. A batch of fewer examples than processes
    leaves the last of them an empty part.
    """
    return [batch[rank::world] for batch in batches]
