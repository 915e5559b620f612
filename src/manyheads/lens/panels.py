"""Panels: figures other than attention maps (curves, bars, heat maps, ...), as plain data.

Figures of one input and results of lab experiments use the same panels; `panel_plot.py` draws them.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with its 95% interval; a single seed has no interval."""

    mean: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        """Format as mean ± half of the interval."""
        if self.low is None or self.high is None:
            return number(self.mean)
        return f"{number(self.mean)} ± {number((self.high - self.low) / 2)}"


def number(value: float) -> str:
    """Format a number with three significant digits.

    Examples:
        >>> number(0.12345), number(1234567), number(42.0), number(1e-7), number(99.96)
        ('0.123', '1,234,567', '42', '1.00e-07', '100')
    """
    if not math.isfinite(value):
        return str(value)
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    size = abs(value)
    if size >= 1e7 or size < 1e-3:
        return f"{value:.2e}"
    digits = max(0, 2 - math.floor(math.log10(size)))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


Cell = Interval | int | float | str | None


def written(value: Cell) -> str:
    """Format a cell of a table; a missing value is empty."""
    if value is None:
        return ""
    return number(value) if isinstance(value, int | float) else str(value)


@dataclass(frozen=True)
class Table:
    """Rows of numbers under named columns."""

    title: str
    columns: list[str]
    rows: list[list[Cell]]
    kind: ClassVar[Literal["table"]] = "table"


@dataclass(frozen=True)
class Curve:
    """One line of a panel, with interval bounds if there are several seeds."""

    name: str
    x: list[float]
    y: list[float | None]
    low: list[float | None] = field(default_factory=list)
    high: list[float | None] = field(default_factory=list)

    @classmethod
    def over(cls, name: str, values: Sequence[float], first: int = 0) -> "Curve":
        """Build a curve over first, first + 1, ..."""
        places = range(first, first + len(values))
        return cls(name, [float(place) for place in places], [float(value) for value in values])

    @classmethod
    def of(cls, name: str, x: Sequence[float], intervals: Sequence[Interval]) -> "Curve":
        """Build a curve from means with intervals."""
        means, low, high = ([getattr(i, k) for i in intervals] for k in ("mean", "low", "high"))
        return cls(name, [float(each) for each in x], means, low, high)


@dataclass(frozen=True)
class Lines:
    """A panel of curves, with optional logarithmic axes."""

    title: str
    x: str
    y: str
    curves: list[Curve]
    log_x: bool = False
    log_y: bool = False
    kind: Literal["lines"] = "lines"


@dataclass(frozen=True)
class Bars:
    """A panel of bars, one per name."""

    title: str
    y: str
    names: list[str]
    values: list[Interval]
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True)
class Heat:
    """A heat map: one value per row and column; None is white."""

    title: str
    x: str
    y: str
    values: list[list[float | None]]
    rows: list[str] = field(default_factory=list)  # names; numbers from 1 if there are none
    columns: list[str] = field(default_factory=list)
    numbered: bool = True  # False: no row and column numbers, such as for pixels
    # From the lightest to the darkest shade; None: the least and the largest value.
    scale: list[float] | None = None
    signed: bool = False  # two hues that meet at 0; the scale is symmetric
    tile: list[int] | None = None  # rows and columns of one tile, if it is a mosaic
    kind: Literal["heat"] = "heat"


@dataclass(frozen=True)
class Scatter:
    """A scatter plot of named points with equal axis scales."""

    title: str
    x: str
    y: str
    names: list[str]
    points: list[list[float]]  # x and y of each
    groups: list[str] = field(default_factory=list)  # the group of each point; or empty
    kind: Literal["scatter"] = "scatter"


Panel = Lines | Bars | Heat | Scatter


@dataclass(frozen=True)
class Figure:
    """A panel about one input or its model, with a legend."""

    group: str  # "heads", "distance", "layers", "positions", "embeddings", "mask", "loss", ...
    legend: str  # how it was measured, and what was left out
    panel: Panel | Table

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON types: the fields of the figure and of its panel."""
        own = {"kind": self.panel.kind, "group": self.group, "legend": self.legend}
        return {**own, **asdict(self.panel)}
