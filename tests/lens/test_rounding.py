"""Numbers of a view are shortened, by hand."""

import pytest
import torch

from manyheads.lens.rounding import rounded, significant


def test_four_decimals() -> None:
    assert rounded(torch.tensor([0.12345, 12.34567, -0.00004])) == [0.1235, 12.3457, 0.0]
    assert rounded(torch.tensor([0.1234])) == [0.1234]  # not 0.12340000271797180


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([123.456, 0.123], [123.5, 0.1]),  # tenths of the largest
        ([12345.6, 4.0], [12350.0, 0.0]),
        ([0.00123456, 0.00000449], [0.001235, 0.000004]),
        ([-9.9996, 1.00049], [-10.0, 1.0]),
        ([1.0, 0.00051], [1.0, 0.001]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([], []),
    ],
)
def test_four_digits_of_the_largest(given: list[float], expected: list[float]) -> None:
    """The last digit that is kept stands in the same place for all, whatever their scale."""
    assert significant(torch.tensor(given)) == pytest.approx(expected, rel=1e-12, abs=0)
