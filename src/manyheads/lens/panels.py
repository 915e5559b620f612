"""Panels: the few kinds of figures that are no attention maps, as plain data.

The looks of one input and the experiments of the lab are made of the same panels, and one drawer
draws them all (`panel_plot.py`).
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal


@dataclass(frozen=True)
class Interval:
    """A mean over seeds, and the 95% interval of that mean; one seed has none."""

    mean: float
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        """Write the mean, and how far the interval reaches to each side."""
        if self.low is None or self.high is None:
            return number(self.mean)
        return f"{number(self.mean)} ± {number((self.high - self.low) / 2)}"


def number(value: float) -> str:
    """Write a number with three digits that mean something.

    Examples:
        >>> number(0.12345), number(1234567), number(42.0), number(1e-7), number(99.96)
        ('0.123', '1,234,567', '42', '1.00e-07', '100')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
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
    """Write a cell of a table; what was not measured is left empty."""
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
    """One line of a panel, with the bounds of its interval where there are several seeds."""

    name: str
    x: list[float]
    y: list[float | None]
    low: list[float | None] = field(default_factory=list)
    high: list[float | None] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, x: Sequence[float], found: Sequence[Interval]) -> "Curve":
        """Draw means with their intervals."""
        return cls(
            name,
            [float(each) for each in x],
            [each.mean for each in found],
            [each.low for each in found],
            [each.high for each in found],
        )


@dataclass(frozen=True)
class Lines:
    """A panel of curves; an axis may be logarithmic."""

    title: str
    x: str
    y: str
    curves: list[Curve]
    log_x: bool = False
    log_y: bool = False
    kind: Literal["lines"] = "lines"


@dataclass(frozen=True)
class Bars:
    """A panel of bars, one a name."""

    title: str
    y: str
    names: list[str]
    values: list[Interval]
    kind: Literal["bars"] = "bars"


@dataclass(frozen=True)
class Heat:
    """A panel of shades: one value a row and column; None is left white."""

    title: str
    x: str
    y: str
    values: list[list[float | None]]
    rows: list[str] = field(default_factory=list)  # names; numbers from 1 if there are none
    columns: list[str] = field(default_factory=list)
    numbered: bool = True  # False: rows and columns that nobody counts, such as pixels
    # From the lightest to the darkest shade; None: the least and the largest value.
    scale: list[float] | None = None
    signed: bool = False  # two hues that meet at 0; the scale reaches as far to both sides
    tile: list[int] | None = None  # rows and columns of one of many small maps side by side
    kind: Literal["heat"] = "heat"


@dataclass(frozen=True)
class Scatter:
    """A panel of named points in a plane; equal lengths on both axes mean the same."""

    title: str
    x: str
    y: str
    names: list[str]
    points: list[list[float]]  # x and y of each
    groups: list[str] = field(default_factory=list)  # what each belongs to; none, or one a point
    kind: Literal["scatter"] = "scatter"


Panel = Lines | Bars | Heat | Scatter


@dataclass(frozen=True)
class Figure:
    """A panel about one input, or the model that read it: what it shows in a sentence."""

    group: str  # "heads", "distance", "layers", "positions", "embeddings", "mask", "loss", ...
    legend: str  # how it was measured, and what was left out
    panel: Panel | Table

    def to_json(self) -> dict[str, Any]:
        """Turn it into what `json.dumps` takes: the panel's own fields beside these."""
        return {
            "kind": self.panel.kind,
            "group": self.group,
            "legend": self.legend,
            **asdict(self.panel),
        }
