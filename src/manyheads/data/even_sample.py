"""Examples from all over a data set, whose order may mean something."""

import numpy as np


def evenly_spaced(count: int, limit: int) -> np.ndarray:
    """Choose the numbers of at most `limit` of `count` examples, evenly from the first to the last.

    Examples:
        >>> evenly_spaced(10, 4).tolist()
        [0, 3, 6, 9]
        >>> evenly_spaced(2, 4).tolist()
        [0, 1]
    """
    return np.unique(np.linspace(0, count - 1, limit).round().astype(int))
