"""manyheads init."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from manyheads.cli.flags import with_flags
from manyheads.cli.printed_answers import print_json

if TYPE_CHECKING:
    from manyheads.own_data.prepared import Prepared

EXAMPLE = 100  # characters


def run(
    data: str,
    out: Path = Path("mine"),
    base_model: str | None = None,
    minutes: float = 30.0,
    hardware: Literal["cpu", "gpu"] | None = None,
    columns: str | None = None,
    glossary: Path | None = None,
    force: bool = False,
    json: bool = False,
) -> None:
    """Make a data folder and a recipe of your own files."""
    from manyheads.cli.terminal import waiting
    from manyheads.own_data.own_data import prepare
    from manyheads.own_data.prepared import Options, recipe_path, write

    chosen = tuple(name.strip() for name in columns.split(",")) if columns else ()
    options = Options(
        minutes=minutes, hardware=hardware, columns=chosen, start=base_model, glossary=glossary
    )
    with waiting(f"reading {data}, and timing a few steps"):
        prepared = prepare(data, out, options, force=force)
    files = write(prepared, out)
    command = shlex.join(["manyheads", "train", str(recipe_path(out))])
    show(prepared, json=json, files=list(map(str, files)), command=command)


def show(prepared: "Prepared", *, json: bool, command: str, files: Sequence[str] = ()) -> None:
    """Print what was found and what to expect, the files that were written, and what to do next."""
    if json:
        parts = asdict(prepared)
        del parts["files"]
        print_json(parts | {"files": files, "command": command})
        return
    for line in prepared.seen:
        print(with_flags(line))
    for each in prepared.findings:
        print(f"  {each.count:,} {each.kind}: {with_flags(each.what_was_done)}")
        for example in each.examples:
            print("      " + example[:EXAMPLE].replace("\n", "\\n"))
    for line in prepared.expect:
        print(with_flags(line))
    if files:
        print(f"written: {', '.join(files)}")
    print(command)
