"""manyheads lab."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from manyheads.lens.panels import Table


def run(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The experiment; without a name, list them."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Under a minute: a look, nothing to conclude from.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many seeds; else the experiment's own number.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for NAME.json, NAME.png and NAME.md.")] = Path(
        "runs/lab"
    ),
    root: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder of data sets; else MANYHEADS_DATA, else data/."),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of tensor operations.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run an experiment of the atlas: a figure, a table and one sentence."""
    from manyheads.cli.show import print_json, warn
    from manyheads.lab.catalogue import CATALOGUE, entry

    if name is None:
        if json:
            print_json({name: each._asdict() for name, each in CATALOGUE.items()})
            return
        for each, about in CATALOGUE.items():
            print(f"{each:<11} {', '.join(about.atlas):<13} {about.question}")
        return
    entry(name)  # a mistyped name is answered before torch is imported
    from manyheads.lab.run import RESULT, run_lab

    result = run_lab(
        name,
        out,
        scale="quick" if quick else "full",
        seeds=seeds,
        root=root,
        threads=threads,
        say=warn,
    )
    if json:
        print_json(RESULT.dump_python(result, mode="json"))
        return
    _print(result.tables)
    print(result.conclusion)
    if quick:
        warn("this was a quick run: leave --quick out for a result with intervals")
    warn(f"wrote {out / name}.md, .json and .png")


def _print(tables: "list[Table]") -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as Drawn

    from manyheads.lab.page import cell

    for table in tables:
        drawn = Drawn(title=table.title, box=box.SIMPLE_HEAD, title_justify="left")
        for number, column in enumerate(table.columns):
            drawn.add_column(column, justify="right" if number else "left")
        for row in table.rows:
            drawn.add_row(*map(cell, row))
        Console(markup=False).print(drawn)
