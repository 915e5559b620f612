"""A search's rule against endless repetition."""

from collections.abc import Sequence

import numpy as np
import torch

from manyheads.nn.shapes import Prefixes, Scores

PERIOD = 16  # tokens of the longest unit whose repetition counts
EVERY = 7  # steps between checks; coprime to the lengths of characters in bytes, 2 to 4


class StopLoops:
    """End an output that does nothing but repeat itself: the same few tokens again and again.

    The end costs what the model says, so that another beam may still win.
    """

    def __init__(self, most: Sequence[int], *, end: int) -> None:
        """Say how many tokens each output may repeat in a row.

        Args:
            most: of each sentence: tokens, each equal to the one a period before it.
            end: the end token.
        """
        self.most = most
        self.end = end

    def __call__(self, scores: Scores, prefixes: Prefixes, sentences: Sequence[int]) -> Scores:
        """Leave only the end to the beams that have repeated themselves for too long."""
        length = prefixes.shape[2]
        if length % EVERY:
            return scores
        for most in {self.most[n] for n in sentences if self.most[n] < length}:
            rows = [row for row, n in enumerate(sentences) if self.most[n] == most]
            # One window of `most` tokens for each period, the last one without a shift.
            windows = prefixes[rows][..., -(most + PERIOD) :].unfold(2, most, 1)
            loops = (windows[..., :-1, :] == windows[..., -1:, :]).all(dim=-1).any(dim=-1)
            if loops.any():
                chosen = scores[rows].masked_fill(loops[..., None], -torch.inf)
                chosen[..., self.end] = scores[rows, :, self.end]
                scores[rows] = chosen
        return scores


def loops(tokens: Sequence[int], most: int) -> bool:
    """Return whether a text repeats so many tokens in a row, as `repeated` counts them."""
    # Each of them is a token that was there before, which is cheap to count.
    return len(tokens) - len(set(tokens)) >= most and repeated(tokens) >= most


def repeated(tokens: Sequence[int]) -> int:
    """Return how many tokens in a row a text repeats at most, each equal to one a period before."""
    row = np.array(tokens)
    longest = 0
    for period in range(1, min(PERIOD, len(row) - 1) + 1):
        differ = np.flatnonzero(row[period:] != row[:-period])
        edges = np.concatenate(([-1], differ, [len(row) - period]))
        longest = max(longest, int(np.diff(edges).max()) - 1)
    return longest
