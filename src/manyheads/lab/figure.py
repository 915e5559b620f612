"""The figure of an experiment as a PNG: its panels side by side, in the colours of the house."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyheads.errors import MissingExtraError
from manyheads.lab.findings import Bars, Curve, Heat, Lines, Panel
from manyheads.lens.colours import FAINT, INK, LINE, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe & Ito 2008: eight colours that colour-blind readers can tell apart; black comes last.
IDENTITY = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
MARKS = "osD^vPX*"
WIDTH, HEIGHT = 4.6, 3.6  # inches a panel
ACROSS = 3  # panels in a row
SMALL = 8.0  # points
DPI = 130


def require() -> None:
    """Make sure that figures can be drawn, before an experiment takes its time.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingExtraError(package="matplotlib", extra="plot") from None


def draw(panels: Sequence[Panel], path: Path, *, title: str) -> None:
    """Draw panels in rows of up to three."""
    from matplotlib.figure import Figure

    across = min(len(panels), ACROSS if len(panels) != 4 else 2)
    down = -(-len(panels) // across)
    figure = Figure(figsize=(WIDTH * across, HEIGHT * down + 0.4), layout="constrained")
    figure.suptitle(title, fontsize=SMALL + 3, color=INK)
    every = figure.subplots(down, across, squeeze=False).flatten()
    for axes, panel in zip(every, panels, strict=False):
        _panel(axes, panel)
    for axes in every[len(panels) :]:
        axes.set_axis_off()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", dpi=DPI, facecolor="white")


def _panel(axes: "Axes", panel: Panel) -> None:
    axes.set_title(panel.title, fontsize=SMALL + 1, color=INK)
    axes.tick_params(which="both", labelsize=SMALL, color=LINE, labelcolor=FAINT)
    for side in axes.spines.values():
        side.set_color(LINE)
    if isinstance(panel, Lines):
        _lines(axes, panel)
    elif isinstance(panel, Bars):
        _bars(axes, panel)
    else:
        _heat(axes, panel)


def _lines(axes: "Axes", panel: Lines) -> None:
    for number, curve in enumerate(panel.curves):
        points = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if y is not None]
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            color=IDENTITY[number % len(IDENTITY)],
            marker=MARKS[number % len(MARKS)] if len(points) <= 40 else None,
            markersize=3.5,
            linewidth=1.4,
            label=curve.name,
        )
    _scale(axes, panel)
    limits = axes.get_ylim()  # of the means: the wide intervals of few seeds are cut off
    bands = any(low is not None for curve in panel.curves for low in curve.low)
    room = 0.2 * (limits[1] - limits[0]) if bands and not panel.log_y else 0.0
    for number, curve in enumerate(panel.curves):
        _band(axes, curve, IDENTITY[number % len(IDENTITY)])
    axes.set_ylim(limits[0] - room, limits[1] + room)
    axes.set_xlabel(panel.x, fontsize=SMALL, color=INK)
    axes.set_ylabel(panel.y, fontsize=SMALL, color=INK)
    axes.grid(color=LINE, linewidth=0.5)
    axes.set_axisbelow(True)
    if len(panel.curves) > 1:
        axes.legend(fontsize=SMALL - 0.5, frameon=False)


def _scale(axes: "Axes", panel: Lines) -> None:
    """Put the ticks where something was measured, if these are few."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    places = sorted({x for curve in panel.curves for x in curve.x})
    if panel.log_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        if all(len(curve.x) > len(places) / 2 for curve in panel.curves) and len(places) <= 12:
            axes.set_xticks(places)
            axes.xaxis.set_minor_locator(NullLocator())
    elif all(float(x).is_integer() for x in places):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if panel.log_y:
        axes.set_yscale("log")


def _band(axes: "Axes", curve: Curve, colour: str) -> None:
    known = [
        (x, low, high)
        for x, low, high in zip(curve.x, curve.low, curve.high, strict=False)
        if low is not None and high is not None
    ]
    if known:
        x, low, high = zip(*known, strict=True)
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def _bars(axes: "Axes", panel: Bars) -> None:
    places = range(len(panel.names))
    axes.bar(places, [v.mean for v in panel.values], color=IDENTITY[0], width=0.65)
    for place, value in zip(places, panel.values, strict=True):
        if value.low is not None and value.high is not None:
            axes.plot([place, place], [value.low, value.high], color=INK, linewidth=1.2)
        aside = value.low is not None  # of the line of its interval
        axes.annotate(
            f"{value.mean:.3g}",
            (place, value.mean),
            xytext=(3 if aside else 0, 3),
            textcoords="offset points",
            ha="left" if aside else "center",
            fontsize=SMALL - 1,
            color=INK,
        )
    slanted: dict[str, Any] = {"rotation": 30, "ha": "right"} if _crowded(panel.names) else {}
    axes.set_xticks(places, panel.names, **slanted)
    axes.set_ylabel(panel.y, fontsize=SMALL, color=INK)
    axes.margins(y=0.12)
    axes.grid(axis="y", color=LINE, linewidth=0.5)
    axes.set_axisbelow(True)


def _crowded(names: Sequence[str]) -> bool:
    return sum(map(len, names)) + 2 * len(names) > 52


def _heat(axes: "Axes", panel: Heat) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator, NullLocator

    ramp = LinearSegmentedColormap.from_list("paper", PAPER, bad="white")
    table = [[float("nan") if v is None else v for v in row] for row in panel.values]
    rows, columns = len(table), len(table[0])
    # Rows and columns are counted from 1.
    place = (0.5, columns + 0.5, rows + 0.5, 0.5)
    image = axes.imshow(table, cmap=ramp, aspect="auto", interpolation="nearest", extent=place)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True) if panel.numbered else NullLocator())
    axes.set_xlabel(panel.x, fontsize=SMALL, color=INK)
    axes.set_ylabel(panel.y, fontsize=SMALL, color=INK)
    if panel.rows:
        axes.set_yticks(range(1, rows + 1), panel.rows)
    if panel.columns:
        axes.set_xticks(range(1, columns + 1), panel.columns)
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.05)
    bar.ax.tick_params(labelsize=SMALL - 1, labelcolor=FAINT)
    bar.outline.set_edgecolor(LINE)
