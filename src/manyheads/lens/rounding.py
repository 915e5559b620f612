"""Rounding of the numbers in a view, to save bytes."""

import math
from typing import Any

from torch import Tensor

DECIMALS = 4


def rounded(x: Tensor) -> Any:
    """Convert a tensor to lists of numbers with four decimals."""
    # In double precision, so that 0.1234 is printed as 0.1234.
    return x.double().round(decimals=DECIMALS).tolist()


def significant(x: Tensor) -> Any:
    """Convert a tensor to lists of numbers, with four significant digits of the largest."""
    peak = float(x.abs().max()) if x.numel() else 0.0
    digits = DECIMALS if peak == 0 else DECIMALS - 1 - math.floor(math.log10(peak))
    return x.double().round(decimals=digits).tolist()
