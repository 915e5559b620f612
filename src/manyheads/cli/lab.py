"""manyheads lab."""

from pathlib import Path


def run(
    name: str | None = None,
    quick: bool = False,
    seeds: int | None = None,
    out: Path = Path("runs/lab"),
    root: str | None = None,
    threads: int = 1,
    json: bool = False,
) -> None:
    """Run an experiment of the atlas: a figure, a table and one sentence."""
    from manyheads.cli.printed_answers import print_json, print_tables, warn
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
    from manyheads.labs.run_experiment import RESULT, not_drawn, run_lab

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
    drawn = ".md and .json" if not_drawn() else ".md, .json and .png"
    warn(f"wrote {out / name}{drawn}")
