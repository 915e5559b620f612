"""A curve over the steps of a run as SVG, to be written into a page."""

import html
import math
from collections.abc import Sequence

from manyheads.lens.panels import number

Point = tuple[float, float]
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 240, 62, 12, 26  # pixels
MOST = 600  # points of a line; of more, means of neighbours are drawn


def curve_svg(
    title: str, line: Sequence[Point], *, last: float, marks: Sequence[tuple[float, str]] = ()
) -> str:
    """Draw values over steps 0..last, with named marks at some of them.

    Values that are not finite are left out. Few points are drawn as dots, too.
    """
    points = [(x, y) for x, y in line if math.isfinite(y)]
    group = -(-len(points) // MOST) or 1
    parts = [points[first : first + group] for first in range(0, len(points), group)]
    points = [(part[-1][0], sum(y for _, y in part) / len(part)) for part in parts]
    values = [y for _, y in points] or [0.0]
    low, high = min(values), max(values)
    room = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    low, high = low - room, high + room

    def across(x: float) -> float:
        return round(LEFT + (WIDTH - LEFT - 8) * x / max(last, 1), 1)

    def down(y: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (high - y) / (high - low), 1)

    drawn = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = share * last, low + room + share * (high - low - 2 * room)
        side = "end" if share == 1 else "middle"
        drawn += [
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - 8}" y1="{down(y)}" y2="{down(y)}"/>',
            f'<text x="{LEFT - 6}" y="{down(y) + 4}" text-anchor="end">{number(y)}</text>',
            f'<text x="{across(x)}" y="{HEIGHT - 8}" text-anchor="{side}">{round(x):,}</text>',
        ]
    for x, name in marks:
        side, shift = ("start", 4) if x < 0.7 * last else ("end", -4)
        drawn += [
            f'<line class="mark" x1="{across(x)}" x2="{across(x)}" y1="{TOP}" '
            f'y2="{HEIGHT - BOTTOM}"/>',
            f'<text class="named" x="{across(x) + shift}" y="{TOP + 10}" text-anchor="{side}">'
            f"{html.escape(name)}</text>",
        ]
    places = " ".join(f"{across(x)},{down(y)}" for x, y in points)
    drawn.append(f'<polyline points="{places}"/>')
    if len(points) <= 40:
        drawn += [f'<circle cx="{across(x)}" cy="{down(y)}" r="2.5"/>' for x, y in points]
    shown = f"{title}: {number(values[0])} first, {number(values[-1])} last" if points else title
    return (
        f'<figure><figcaption>{html.escape(title)}</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-label="{html.escape(shown)}">{"".join(drawn)}</svg></figure>'
    )
