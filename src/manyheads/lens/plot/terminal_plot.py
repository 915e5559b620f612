"""An attention map in a terminal: shaded cells with percentages, or block characters in a log."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions
from rich.text import Text

from manyheads.lens.colours import NIGHT, shade
from manyheads.lens.labels import labels

WIDEST = 120  # columns used of a wider terminal
ROW_LABEL = 16
COLUMN_LABEL = 10
BLOCKS = "·░▒▓█"
STEPS = (0.125, 0.375, 0.625, 0.875)  # shares of the peak at which the next block begins


def render_map(
    rows: Sequence[str], columns: Sequence[str], weights: Sequence[Sequence[float]], title: str = ""
) -> "TerminalMap":
    """Prepare a map for `rich.print`: output tokens below, source tokens across."""
    return TerminalMap(labels(rows), labels(columns), weights, title)


@dataclass(frozen=True)
class TerminalMap:
    """A map that fits the console; a map too wide is split into bands of columns."""

    rows: list[str]
    columns: list[str]
    weights: Sequence[Sequence[float]]
    title: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Draw with or without colours, as the console supports."""
        colour = console.color_system in ("256", "truecolor") and not console.no_color
        peak = max((weight for row in self.weights for weight in row), default=0.0) or 1.0
        margin = min(max(map(cell_len, self.rows), default=0), ROW_LABEL) + 1
        room = min(options.max_width, WIDEST) - margin
        cell = max(max(map(cell_len, self.columns), default=0) + 1, 4)
        lying = cell <= COLUMN_LABEL and cell * len(self.columns) <= room
        if not lying:
            cell = 3 if 3 * len(self.columns) <= room else 2
        if self.title:
            yield Text(self.title, style="bold")
        band = max(room // cell, 1)
        for first in range(0, len(self.columns), band):
            chosen = slice(first, first + band)
            heads = self.columns[chosen]
            for parts in [heads] if lying else _standing(heads):
                text = "".join(_fit(part, cell, centre=True) for part in parts)
                yield Text(" " * margin + text, no_wrap=True)
            for name, row in zip(self.rows, self.weights, strict=True):
                line = Text(_fit(name, margin - 1, right=True) + " ", no_wrap=True)
                for weight in row[chosen]:
                    line.append_text(_cell(weight, peak, cell, colour))
                yield line
        yield _scale(peak, margin, colour)


def _cell(weight: float, peak: float, width: int, colour: bool) -> Text:
    share = weight / peak
    if not colour:
        block = BLOCKS[sum(share >= step for step in STEPS)]
        if block == BLOCKS[0]:
            return Text(_fit(block, width, centre=True))
        return Text(_fit(block * (width - 1), width))
    number = f"{100 * weight:.0f}" if weight >= 0.095 and width > 2 else ""
    ink = NIGHT[0] if share > 0.5 else NIGHT[-1]
    return Text(number.center(width), style=f"{ink} on {shade(share, NIGHT)}")


def _scale(peak: float, margin: int, colour: bool) -> Text:
    line = Text(" " * margin, no_wrap=True)
    if colour:
        line.append("0 ", style="dim")
        for share in range(16):
            line.append(" ", style=f"on {shade(share / 15, NIGHT)}")
        return line.append(f" {peak:.2f}   numbers are per cent", style="dim")
    line.append(f"· below {STEPS[0] * peak:.2f}")
    for block, step in zip(BLOCKS[1:], STEPS, strict=True):
        line.append(f"   {block} {step * peak:.2f}")
    return line.append(f" to {peak:.2f}")


def _standing(names: Sequence[str]) -> list[Sequence[str]]:
    """Turn column labels upright: the characters of each line, the last line at the map."""
    cut = [name if len(name) <= COLUMN_LABEL else name[: COLUMN_LABEL - 1] + "⋮" for name in names]
    height = max(map(len, cut), default=0)
    return list(zip(*(name.rjust(height) for name in cut), strict=True))


def _fit(text: str, width: int, *, right: bool = False, centre: bool = False) -> str:
    """Cut or pad to a number of terminal cells; a Hangul syllable takes two."""
    if cell_len(text) > width:
        text = set_cell_size(text, width - 1).rstrip() + "…"
    gap = width - cell_len(text)
    left = gap if right else gap // 2 if centre else 0
    return " " * left + text + " " * (gap - left)
