"""Examples from all over a data set."""

import pytest

from manyheads.data.even_sample import evenly_spaced


@pytest.mark.parametrize(
    ("count", "limit", "expected"),
    [(10, 4, [0, 3, 6, 9]), (3, 3, [0, 1, 2]), (2, 5, [0, 1]), (1, 5, [0]), (5, 1, [0])],
)
def test_the_first_to_the_last(count: int, limit: int, expected: list[int]) -> None:
    """Each at most once, in order."""
    assert evenly_spaced(count, limit).tolist() == expected
