"""manyheads lab."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The experiment; without a name, list them."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Under a minute: a look, nothing to conclude from.")
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="How many seeds; else the experiment's own number."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for NAME.json, NAME.png and NAME.md.")] = Path(
        "runs/lab"
    ),
    root: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder of data sets; else MANYHEADS_DATA, else data/."),
    ] = None,
    threads: Annotated[
        int, typer.Option(min=1, max=1024, help="Threads of tensor operations.")
    ] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run an experiment of the atlas: a figure, a table and one sentence."""
    from manyheads.cli.show import print_json, print_tables, warn
    from manyheads.labs.catalogue import CATALOGUE, find

    if name is None:
        if json:
            print_json(
                {n: {"atlas": lab.atlas, "question": lab.question} for n, lab in CATALOGUE.items()}
            )
            return
        for each, about in CATALOGUE.items():
            print(f"{each:<11} {', '.join(about.atlas):<13} {about.question}")
        return
    find(name)  # a mistyped name is answered before torch is imported
    from manyheads.labs.run_experiment import RESULT, run_lab

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
    else:
        print_tables(result.tables)
        print(result.conclusion)
    if quick:
        warn("this was a quick run: leave --quick out for a result with intervals")
    warn(f"wrote {out / name}.md, .json and .png")
