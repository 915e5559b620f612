"""Panels side by side as a PNG."""

from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from manyheads.errors import optional_import
from manyheads.files import writing
from manyheads.lens import panels
from manyheads.lens.colours import AGAINST, FAINT, IDENTITY, INK, LINE, PAPER
from manyheads.lens.labels import cut
from manyheads.lens.plot.fonts import Fonts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.text import Text

MARKS = "osD^vPX*"
WIDTH, HEIGHT = 4.6, 3.6  # inches a panel
CAPTION = 0.6  # inches a caption
ACROSS = 3  # panels in a row
SMALL = 8.0  # points
DPI = 130
NAMED = 32  # names along a side; of more, every second, third, ... is written
ROWS = 16  # of a table
WIDE = 90  # characters of all its columns
POINTS = 60  # named points of a scatter plot; of more, only those of small groups


def require() -> None:
    """Check that matplotlib is installed, before a long experiment.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    with optional_import("matplotlib", extra="plot"):
        import matplotlib.figure  # noqa: F401


def draw(shown: Sequence[panels.Panel], path: Path, *, title: str) -> None:
    """Draw panels in rows of up to three."""
    draw_figures([panels.Figure("", "", panel) for panel in shown], path, title=title)


def draw_figures(figures: Sequence[panels.Figure], path: Path, *, title: str) -> None:
    """Draw figures, each panel with its legend."""
    require()
    from matplotlib.figure import Figure as Paper

    captions = [fill(figure.legend, 78) for figure in figures]
    texts = [text for each in figures for text in _texts(each.panel)]
    pen = _Pen(Fonts([title, *captions, *texts]))
    across = min(len(figures), ACROSS if len(figures) != 4 else 2)
    down = -(-len(figures) // across)
    high = HEIGHT + CAPTION * any(captions)
    paper = Paper(figsize=(WIDTH * across, high * down + 0.4), layout="constrained")
    pen.write(paper.suptitle(" "), title, SMALL + 3)
    parts = paper.subfigures(down, across, squeeze=False).flatten()
    for part, caption, figure in zip(parts, captions, figures, strict=False):
        if caption:
            pen.write(part.supxlabel(" "), caption, SMALL - 1.5, FAINT)
        pen.panel(part.subplots(), figure.panel)
    with writing(path) as file:
        paper.savefig(file, format="png", dpi=DPI, facecolor="white")


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts of a panel, to choose fonts."""
    if isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif is_dataclass(value) and not isinstance(value, panels.Interval):
        yield from _texts(list(vars(value).values()))
    elif isinstance(value, str):
        yield value


class _Pen:
    """Draws panels, with fonts that have all characters of their texts."""

    def __init__(self, fonts: Fonts) -> None:
        self.fonts = fonts

    def write(self, place: "Text", text: str, size: float = SMALL, colour: str = INK) -> None:
        """Write a user's text: a dollar sign does not begin a formula."""
        clean, font = self.fonts.choose(text, size)
        place.set(text=clean, fontproperties=font, color=colour, parse_math=False)

    def panel(self, axes: "Axes", panel: panels.Panel | panels.Table) -> None:
        self.write(axes.title, panel.title, SMALL + 1)
        axes.tick_params(which="both", labelsize=SMALL, color=LINE, labelcolor=FAINT)
        for side in axes.spines.values():
            side.set_color(LINE)
        if not isinstance(panel, panels.Table):
            self.write(axes.yaxis.label, panel.y)
        if isinstance(panel, panels.Lines | panels.Heat | panels.Scatter):
            self.write(axes.xaxis.label, panel.x)
        getattr(self, panel.kind)(axes, panel)

    def names(self, axis: "Axis", names: Sequence[str], first: int, turn: float = 0.0) -> None:
        """Label the positions first, first + 1, ... of an axis; of very many only some."""
        step = -(-len(names) // NAMED)
        size = SMALL if len(names) <= NAMED / 2 else SMALL - 2
        chosen = [self.fonts.choose(cut(name, 24), size) for name in names[::step]]
        places = range(first, first + len(names), step)
        axis.set_ticks(places, [text for text, _ in chosen], rotation=turn, parse_math=False)
        for place, (_, font) in zip(axis.get_ticklabels(), chosen, strict=True):
            place.set_fontproperties(font)
            if 0 < turn < 90:
                place.set_horizontalalignment("right")

    def legend(self, axes: "Axes", names: Sequence[str]) -> None:
        drawn = axes.legend(fontsize=SMALL - 0.5, frameon=False)
        for place, name in zip(drawn.get_texts(), names, strict=True):
            self.write(place, name, SMALL - 0.5)

    def lines(self, axes: "Axes", panel: panels.Lines) -> None:
        for place, curve in enumerate(panel.curves):
            points = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if y is not None]
            _series(axes, place, points, marked=len(points) <= 40, linewidth=1.4)
        _scale(axes, panel)
        limits = axes.get_ylim()  # of the means: wide intervals of few seeds are clipped
        bands = any(low is not None for curve in panel.curves for low in curve.low)
        room = 0.2 * (limits[1] - limits[0]) if bands and not panel.log_y else 0.0
        for place, curve in enumerate(panel.curves):
            _band(axes, curve, IDENTITY[place % len(IDENTITY)])
        if not panel.log_y:  # do not stretch differences below a percent over the whole panel
            room = max(room, (max(map(abs, limits)) / 50 - (limits[1] - limits[0])) / 2)
        axes.set_ylim(limits[0] - room, limits[1] + room)
        axes.grid(color=LINE, linewidth=0.5)
        axes.set_axisbelow(True)
        if len(panel.curves) > 1:
            self.legend(axes, [curve.name for curve in panel.curves])

    def bars(self, axes: "Axes", panel: panels.Bars) -> None:
        places = range(len(panel.names))
        axes.bar(places, [v.mean for v in panel.values], color=IDENTITY[0], width=0.65)
        for place, value in zip(places, panel.values, strict=True):
            if value.low is not None and value.high is not None:
                axes.plot([place, place], [value.low, value.high], color=INK, linewidth=1.2)
            if len(panel.names) > NAMED / 2:
                continue
            aside = value.low is not None  # of the line of its interval
            look: dict[str, Any] = {"ha": "left" if aside else "center", "color": INK}
            look |= {"textcoords": "offset points", "fontsize": SMALL - 1}
            shift = (3 if aside else 0, 3)
            axes.annotate(f"{value.mean:.3g}", (place, value.mean), shift, **look)
        self.names(axes.xaxis, panel.names, 0, 30 if _crowded(panel.names) else 0)
        axes.margins(y=0.12)
        axes.grid(axis="y", color=LINE, linewidth=0.5)
        axes.set_axisbelow(True)

    def heat(self, axes: "Axes", panel: panels.Heat) -> None:
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.ticker import MaxNLocator, NullLocator

        colours = [*AGAINST[:0:-1], *PAPER] if panel.signed else PAPER
        ramp = LinearSegmentedColormap.from_list("panel", colours, bad="white")
        table = [[float("nan") if v is None else v for v in row] for row in panel.values]
        rows, columns = len(table), len(table[0])
        low, high = _limits(panel)
        # Rows and columns are counted from 1.
        place = (0.5, columns + 0.5, rows + 0.5, 0.5)
        look: dict[str, Any] = {"vmin": low, "vmax": high, "interpolation": "nearest"}
        look["aspect"] = "equal" if panel.tile else "auto"
        image = axes.imshow(table, cmap=ramp, extent=place, **look)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True) if panel.numbered else NullLocator())
        if panel.rows:
            self.names(axes.yaxis, panel.rows, 1)
        if panel.columns:
            self.names(axes.xaxis, panel.columns, 1, 90 if _crowded(panel.columns) else 0)
        if panel.tile:
            down, across = panel.tile
            axes.hlines([y + 0.5 for y in range(down, rows, down)], *place[:2], "white", lw=0.8)
            axes.vlines(
                [x + 0.5 for x in range(across, columns, across)], *place[2:], "white", lw=0.8
            )
        bar = axes.figure.colorbar(image, ax=axes, fraction=0.05)
        bar.ax.tick_params(labelsize=SMALL - 1, labelcolor=FAINT)
        bar.outline.set_edgecolor(LINE)

    def scatter(self, axes: "Axes", panel: panels.Scatter) -> None:
        kinds = list(dict.fromkeys(panel.groups)) or [""]
        groups = panel.groups or [""] * len(panel.names)
        for place, kind in enumerate(kinds):
            chosen = [p for p, group in zip(panel.points, groups, strict=True) if group == kind]
            _series(axes, place, chosen, linestyle="none")
        every = len(panel.names) <= POINTS
        for name, group, (x, y) in zip(panel.names, groups, panel.points, strict=True):
            if not every and groups.count(group) > len(groups) / 4:
                continue
            named = axes.annotate(" ", (x, y), xytext=(3, 2), textcoords="offset points")
            self.write(named, name, SMALL - 1.5)
        axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.12)
        if len(kinds) > 1:
            self.legend(axes, kinds)

    def table(self, axes: "Axes", panel: panels.Table) -> None:
        axes.set_axis_off()
        room = WIDE // len(panel.columns)
        rows = [[cut(panels.written(cell), room) for cell in row] for row in panel.rows]
        if len(rows) > ROWS:
            rest = [f"and {len(rows) - ROWS + 1} more", *[""] * (len(panel.columns) - 1)]
            rows = [*rows[: ROWS - 1], rest]
        drawn = axes.table([panel.columns, *rows], loc="upper center", cellLoc="left")
        drawn.auto_set_font_size(False)
        drawn.auto_set_column_width(list(range(len(panel.columns))))
        for (row, _), cell in drawn.get_celld().items():
            cell.set(edgecolor=LINE, linewidth=0.5)
            text = cell.get_text()
            self.write(text, text.get_text(), SMALL - 1, INK if row else FAINT)


def _scale(axes: "Axes", panel: panels.Lines) -> None:
    """Put ticks at the measured values if there are few."""
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


def _series(
    axes: "Axes", place: int, points: Sequence[Sequence[float]], marked: bool = True, **look: Any
) -> None:
    """Plot the points of one curve or group, in its colour and with its mark."""
    look |= {"color": IDENTITY[place % len(IDENTITY)], "label": f"series {place}"}
    look |= {"marker": MARKS[place % len(MARKS)] if marked else None, "markersize": 3.5}
    axes.plot([x for x, _ in points], [y for _, y in points], **look)


def _band(axes: "Axes", curve: panels.Curve, colour: str) -> None:
    known = [
        (x, low, high)
        for x, low, high in zip(curve.x, curve.low, curve.high, strict=False)
        if low is not None and high is not None
    ]
    if known:
        x, low, high = zip(*known, strict=True)
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def _crowded(names: Sequence[str]) -> bool:
    return sum(map(len, names)) + 2 * len(names) > 52


def _limits(panel: panels.Heat) -> tuple[float | None, float | None]:
    """Return the values of the first and the last shade; None: minimum and maximum."""
    if panel.scale is not None:
        return panel.scale[0], panel.scale[1]
    if not panel.signed:
        return None, None
    peak = max((abs(v) for row in panel.values for v in row if v is not None), default=1.0) or 1.0
    return -peak, peak
