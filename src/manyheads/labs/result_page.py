"""A result as a Markdown page: conclusion, figure, tables and method."""

from manyheads.labs.findings import Result
from manyheads.lens.panels import Cell, Table, number, written


def page(result: Result, *, drawn: bool = True) -> str:
    """Write the page of a result; `drawn`: its figure lies beside the page."""
    parts = [f"# {result.lab}", f"*{result.question}* (atlas {', '.join(result.atlas)})"]
    parts.append(f"**{result.conclusion}**")
    if result.scale != "full":
        parts.append(f"*A {result.scale} run: too small to conclude from. Leave --quick out.*")
    if len(result.seeds) == 1 and _chance(result):
        parts.append("*One seed, so no interval: differences may be luck.*")
    if drawn:
        parts.append(f"![{result.question}]({result.lab}.png)")
    parts += [*map(_table, result.tables), "## How it was measured", result.method]
    parts += ["## What this scale cannot show", result.limits, "## Run", _run(result)]
    return "\n\n".join(parts) + "\n"


def _chance(result: Result) -> bool:
    return any(", seed " in trial.name for trial in result.trials)


def _table(table: Table) -> str:
    rows = [
        f"| {' | '.join(table.columns)} |",
        "|---" + "|---:" * (len(table.columns) - 1) + "|",
        *(f"| {' | '.join(map(cell, row))} |" for row in table.rows),
    ]
    return f"### {table.title}\n\n" + "\n".join(rows)


def cell(value: Cell) -> str:
    """Format a cell of a Markdown table, with escaped bars."""
    return written(value).replace("|", "\\|")


def _run(result: Result) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in result.machine.items())
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    sizes = ", ".join(f"{name} {value}" for name, value in result.size.items())
    chance = f"; seeds {', '.join(map(str, result.seeds))}" if _chance(result) else ""
    return "\n".join(
        [
            f"`{result.command}`, {result.date}, {number(result.minutes)} minutes "
            f"({number(result.cpu_minutes)} of processor time){chance}",
            "",
            f"- machine: {machine}",
            f"- versions: {versions}",
            f"- sizes: {sizes or 'none'}",
            *(["- ± is half of a 95% interval over seeds"] if len(result.seeds) > 1 else []),
        ]
    )
