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
    batches, first = [], 0
    for last in range(len(order)):  # sorted, so the last pair is the longest of its batch
        if (last - first + 1) * longest[order[last]] > max_tokens and last > first:
            batches.append(order[first:last])
            first = last
    if first < len(order):
        batches.append(order[first:])
    random.shuffle(batches)
    return batches


def shuffled(count: int, batch_size: int, *, seed: int, epoch: int) -> list[np.ndarray]:
    """Divide examples of equal size into batches, in another order each epoch."""
    order = generator(seed, "order", epoch).permutation(count)
    return [order[first : first + batch_size] for first in range(0, count, batch_size)]
