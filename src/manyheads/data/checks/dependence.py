"""Whether two sides of examples have to do with each other: a test by permutation.

The statistic is the sum of squared correlations between features of the two sides (the linear case
of HSIC, Gretton et al. 2005). Shuffling one side shows what chance gives: of examples that belong
together the statistic lies many standard deviations above it.
"""

import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from manyheads.streams import generator

BUCKETS = 256
PERMUTATIONS = 40


class Sides(NamedTuple):
    """A sample of examples: what goes in and what comes out, each with its name."""

    names: tuple[str, str]
    features: tuple[np.ndarray, np.ndarray]  # (example, feature)
    contents: tuple[Sequence[object], Sequence[object]]  # to be counted; shown where they are texts


def dependence(first: np.ndarray, second: np.ndarray) -> float:
    """Return how many standard deviations the statistic lies above that of shuffled examples.

    Args:
        first: features (example, feature) of one side; constant ones count for nothing.
        second: features of the other side.
    """
    one, two = (_similarities(each.astype(np.float64)) for each in (first, second))
    random = generator(0, "dependence")
    orders = (random.permutation(len(two)) for _ in range(PERMUTATIONS))
    shuffled = [float((one * two[np.ix_(order, order)]).sum()) for order in orders]
    spread = float(np.std(shuffled))
    return (float((one * two).sum()) - float(np.mean(shuffled))) / spread if spread else 0.0


def text_features(texts: Sequence[str]) -> np.ndarray:
    """Count words and pairs of characters in buckets, and the length: (text, BUCKETS + 1)."""
    features = np.zeros((len(texts), BUCKETS + 1))
    for row, text in zip(features, (each.casefold() for each in texts), strict=True):
        for part in [*text.split(), *map("".join, pairwise(text))]:
            row[zlib.crc32(part.encode("utf-8", "replace")) % BUCKETS] += 1
        row[BUCKETS] = len(text)
    return np.log1p(features)


def _similarities(features: np.ndarray) -> np.ndarray:
    """Return products of standardised features (example, example).

    The sum of products of two such tables is that of squared correlations between the features.
    """
    centred = features - features.mean(axis=0)
    spread = centred.std(axis=0)
    scaled = centred[:, spread > 1e-9] / spread[spread > 1e-9]
    return np.asarray(scaled @ scaled.T)
