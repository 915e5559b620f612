"""A sample of the examples of a split."""

import numpy as np

from manyheads.streams import generator


def random_sample(count: int, wanted: int) -> np.ndarray:
    """Choose so many of `count` things at random, as every second one may be of one class."""
    return np.sort(generator(0, "doctor").permutation(count)[:wanted])
