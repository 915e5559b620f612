"""Tables and panels of a result: figures.toml describes them, an experiment gives their numbers.

A description names its data (`data`, else "measured"): rows by name, each with cells by column.
`measure` is the path of keys from a cell to its number; where it comes to the trials of all seeds,
the number is their interval. `columns` of a table, and `curves` of a panel over the rows, are such
paths by name instead. With `each`, there is one for every entry of the data. Texts in braces are
filled in from the sizes (`size`), the data, and the entry (`entry`).
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from manyheads.labs.bench import Size
from manyheads.labs.findings import Findings, over
from manyheads.lens.panels import Bars, Cell, Curve, Heat, Interval, Lines, Panel, Table

Described = Mapping[str, Any]
TEXTS = ("title", "corner", "x", "y")


def findings(lab: str, size: Size, conclusion: str, data: Mapping[str, Any]) -> Findings:
    """Build the tables and panels of an experiment from its data."""
    described = _described()[lab]
    return Findings(
        conclusion,
        [_table(*each) for each in _filled(described["tables"], size, data)],
        [_panel(*each) for each in _filled(described["panels"], size, data)],
    )


@cache
def _described() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "figures.toml").read_text(encoding="utf-8"))


def _filled(
    described: Sequence[Described], size: Size, data: Mapping[str, Any]
) -> Iterator[tuple[Described, Any]]:
    """Yield each description with its texts filled in, and its data."""
    for each in described:
        chosen = data[each.get("data", "measured")]
        for entry, rows in chosen.items() if "each" in each else [(None, chosen)]:
            texts = {key: each.get(key, "").format(size=size, entry=entry, **data) for key in TEXTS}
            yield {**each, **texts}, rows


def _table(described: Described, rows: Any) -> Table:
    if not isinstance(rows, Mapping):  # rows of cells
        return Table(described["title"], described["columns"], rows)
    keys, measure = list(next(iter(rows.values()))), _path(described.get("measure", []))
    columns = {name: _path(path) for name, path in described.get("columns", {}).items()}
    if described.get("parameters"):  # counted by every trial
        columns["parameters"] = [keys[-1], 0, "parameters"]
    if "columns" not in described:
        write = described.get("header", "{:,}" if isinstance(keys[0], int) else "{}").format
        columns |= {write(key): [key, *measure] for key in keys}
    cells = [[name, *(_cell(row, path) for path in columns.values())] for name, row in rows.items()]
    return Table(described["title"], [described["corner"], *columns], cells)


def _panel(described: Described, rows: Any) -> Panel:
    title, x, y = (described[key] for key in ("title", "x", "y"))
    measure = _path(described.get("measure", []))
    if described["kind"] == "heat":
        look = {key: described[key] for key in ("numbered", "scale", "signed") if key in described}
        return Heat(title, x, y, **rows, **look)
    if described["kind"] == "bars":
        pairs = rows.items() if isinstance(rows, Mapping) else rows
        cells: list[Any] = [_cell(row, measure) for _, row in pairs]
        values = [cell if isinstance(cell, Interval) else Interval(cell) for cell in cells]
        return Bars(title, y, [name for name, _ in pairs], values)
    if "curves" in described:
        curves = [
            _curve(name, {key: _cell(row, _path(path)) for key, row in rows.items()})
            for name, path in described["curves"].items()
        ]
    else:
        curves = [
            _curve(name, {key: _cell(cell, measure) for key, cell in row.items()})
            for name, row in rows.items()
        ]
    return Lines(title, x, y, curves, described.get("log_x", False), described.get("log_y", False))


def _curve(name: str, points: Mapping[float, Any]) -> Curve:
    values = list(points.values())
    if all(isinstance(value, Interval) for value in values):
        return Curve.of(name, list(points), values)
    return Curve(name, [*map(float, points)], [None if v is None else float(v) for v in values])


def _path(keys: str | Sequence[Any]) -> list[Any]:
    return [keys] if isinstance(keys, str) else list(keys)


def _cell(measured: Any, path: Sequence[Any]) -> Cell:
    """Follow keys to a number, or to the interval over the trials of all seeds."""
    for place, key in enumerate(path):
        if isinstance(measured, list) and isinstance(key, str):
            return over(measured, *path[place:])
        measured = measured[key]
    return measured
