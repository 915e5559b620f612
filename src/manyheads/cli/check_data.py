"""manyheads check-data."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from manyheads.app.check import Checked, Cleaned

COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def run(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Corpora: the stem of two files, a .tsv, .csv, .jsonl, .parquet or .tmx file, "
            "hub:owner/name; or one recipe.",
        ),
    ],
    source: Annotated[str | None, typer.Option(help="Language of the source side.")] = None,
    target: Annotated[str | None, typer.Option(help="Language of the target side.")] = None,
    test: Annotated[
        str | None, typer.Option(metavar="PATH", help="Test data that must not be among these.")
    ] = None,
    valid: Annotated[
        str | None, typer.Option(metavar="PATH", help="The same for validation data.")
    ] = None,
    source_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Its name, or its number from 1.")
    ] = None,
    target_column: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Its name, or its number from 1.")
    ] = None,
    fix: Annotated[
        Path | None,
        typer.Option(metavar="OUT", help="Write the cleaned corpus, and OUT.log.jsonl."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look for damage in parallel text: line numbers and remedies. Exit code 1 with errors."""
    from manyheads.app.check import check, clean, cleaned_files, is_recipe, plan, plan_recipe
    from manyheads.cli.show import print_json
    from manyheads.errors import UsageError

    if fix is not None and len(paths) > 1:
        raise UsageError("--fix cleans one corpus at a time: give one PATH.")
    if len(paths) == 1 and is_recipe(paths[0]):
        if test or valid or source or target or source_column or target_column or fix:
            raise UsageError("A recipe names its own data: give none of the other options.")
        plans = plan_recipe(paths[0])
    else:
        columns = (_column(source_column), _column(target_column))
        plans = plan(paths, source=source, target=target, columns=columns, test=test, valid=valid)
    if fix is not None:
        cleaned_files(plans[0][0], fix)  # refused before the work, not after it
    checked = []
    for place, held_out in plans:
        checked.append(check(place, held_out))
        if not json:
            _show(checked[-1])
    cleaned = clean(checked[0], fix) if fix is not None else None
    if json:
        print_json({"corpora": [_as_json(each) for each in checked], "fixed": _files(cleaned)})
    elif cleaned is not None:
        print(
            f"{', '.join(map(str, cleaned.files))}: {cleaned.kept:,} pairs kept, "
            f"{cleaned.changed:,} of them changed; {cleaned.dropped:,} dropped: see {cleaned.log}"
        )
    if any(each.errors for each in checked):
        raise typer.Exit(1)


def _column(text: str | None) -> str | int | None:
    return int(text) if text is not None and text.isdecimal() else text


def _show(checked: "Checked") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    findings = checked.findings
    heading = f"{checked.place.origin}: {len(checked.checker):,} pairs"
    print(f"{heading}, {_counted(checked)}" if findings else f"{heading}, nothing to complain of")
    if not findings:
        return
    table = Table(box=None, show_header=True, header_style="bold", pad_edge=False)
    table.add_column("")
    table.add_column("count", justify="right")
    table.add_column("lines", max_width=20)
    table.add_column("what, and what to do")
    for finding in findings:
        more = ", ..." if finding.count > len(finding.lines) else ""
        side = f" ({finding.sides})" if finding.sides != "both" else ""
        words = Text(f"{finding.what}{side} [{finding.kind}]\n", style="bold")
        words.append(finding.remedy, style="not bold")
        table.add_row(
            Text(finding.severity, style=COLOURS[finding.severity]),
            f"{finding.count:,}",
            ", ".join(map(str, finding.lines)) + more,
            words,
        )
    Console().print(table)


def _counted(checked: "Checked") -> str:
    counts = dict.fromkeys(COLOURS, 0)
    for finding in checked.findings:
        counts[finding.severity] += 1
    return ", ".join(f"{n} {name}{'s' * (n > 1)}" for name, n in counts.items() if n)


def _as_json(checked: "Checked") -> dict[str, object]:
    return {
        "name": checked.place.name,
        "data": checked.place.origin,
        "pairs": len(checked.checker),
        "errors": checked.errors,
        "findings": [asdict(finding) for finding in checked.findings],
    }


def _files(cleaned: "Cleaned | None") -> dict[str, object] | None:
    if cleaned is None:
        return None
    paths = {"files": [str(file) for file in cleaned.files], "log": str(cleaned.log)}
    return cleaned._asdict() | paths
