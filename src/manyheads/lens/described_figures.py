"""Figures of one input: described_figures.toml has their texts, a measure gives their numbers."""

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from manyheads.lens.panels import Figure, Heat, Lines, Scatter, Table

PANELS: dict[str, Any] = {panel.kind: panel for panel in (Heat, Lines, Scatter, Table)}


@cache
def _described() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def figure(name: str, facts: dict[str, Any] | None = None, **numbers: Any) -> Figure:
    """Build a figure by its name: `facts` fill its texts, `numbers` are fields of its panel."""
    texts = {
        key: value.format(**facts or {}) if isinstance(value, str) else value
        for key, value in _described()[name].items()
    }
    group, kind, legend = (texts.pop(key) for key in ("group", "kind", "legend"))
    return Figure(group, legend, PANELS[kind](**texts, **numbers))


def filled(rows: Sequence[list[float | None]]) -> dict[str, Any]:
    """Give rows of a number per head the same length, and number the columns from 1."""
    most = max(map(len, rows))
    values = [[*row, *[None] * (most - len(row))] for row in rows]
    return {"values": values, "columns": [str(number + 1) for number in range(most)]}
