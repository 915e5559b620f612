"""Types of bounded numbers, for tables of recipes and for requests."""

from typing import Annotated

from annotated_types import Ge, Le, Lt

Count = Annotated[int, Ge(1), Le(2**31 - 1)]
Share = Annotated[float, Ge(0), Lt(1)]
Natural = Annotated[int, Ge(0)]
NotNegative = Annotated[float, Ge(0)]
MOST_PIXELS = 1 << 14  # of a side of an image that a model reads
