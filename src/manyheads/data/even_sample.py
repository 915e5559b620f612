"""Examples from all over a data set, whose order may mean something."""

from typing import Protocol, Self, TypeVar

import numpy as np


class Selectable(Protocol):
    """Examples of which some can be taken."""

    def __len__(self) -> int:
        """Count them."""

    def select(self, indices: np.ndarray) -> Self:
        """Take those at these indices."""


S = TypeVar("S", bound=Selectable)


def limited(examples: S, limit: int | None) -> S:
    """Take at most `limit` examples, evenly from the first to the last; all of them if None."""
    if limit is None or limit >= len(examples):
        return examples
    return examples.select(evenly_spaced(len(examples), limit))


def evenly_spaced(count: int, limit: int) -> np.ndarray:
    """Choose the numbers of at most `limit` of `count` examples, evenly from the first to the last.

    Examples:
        >>> evenly_spaced(10, 4).tolist()
        [0, 3, 6, 9]
        >>> evenly_spaced(2, 4).tolist()
        [0, 1]
    """
    return np.unique(np.linspace(0, count - 1, limit).round().astype(int))
