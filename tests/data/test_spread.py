"""Examples from all over a data set."""

import pytest

from manyheads.data.spread import spread


@pytest.mark.parametrize(
    ("count", "limit", "expected"),
    [(10, 4, [0, 3, 6, 9]), (3, 3, [0, 1, 2]), (2, 5, [0, 1]), (1, 5, [0]), (5, 1, [0])],
)
def test_the_first_to_the_last(count: int, limit: int, expected: list[int]) -> None:
    """Each at most once, in order."""
    assert spread(count, limit).tolist() == expected
