"""manyheads doctor."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyheads.cli.options import Device, Remote, Threads

if TYPE_CHECKING:
    from manyheads.doctor.diagnose import Diagnosis
    from manyheads.doctor.finding import Finding


def run(
    name: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="A run folder, finished or not, or the name of a shipped model."
        ),
    ],
    plot: Annotated[
        Path | None,
        typer.Option(metavar="PNG", help="Draw the loss curve with the findings marked."),
    ] = None,
    remote: Remote = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Report problems of a run: with evidence, and with what to change.

    Exit code 1 with errors.
    """
    from manyheads.cli.show import print_json, warn
    from manyheads.doctor.diagnose import diagnose
    from manyheads.project.folder import own_files
    from manyheads.project.paths import checked_name, find_model, make_room

    if plot is not None:
        checked_name(plot, {".png": "an image"})
        make_room(plot, *own_files(find_model(name)))
    found = diagnose(name, remote=remote, device=device, threads=threads)
    if json:
        print_json(found.as_json())
    else:
        _print(found)
    if plot is not None:
        found.plot(plot)
        warn(f"wrote {plot}")
    if found.errors:
        raise typer.Exit(1)


def _print(found: "Diagnosis") -> None:
    from manyheads.cli.show import print_findings

    if found.steps is None:
        where = "trained elsewhere"
    elif found.finished:
        where = f"{found.step:,} steps"
    else:
        where = f"step {found.step:,} of {found.steps:,}, unfinished"
    print_findings(
        f"{found.path} ({found.task}, {where})",
        [
            (each.severity, None, "", f"{each.what} [{each.kind}]", _more(each))
            for each in found.findings
        ],
        none="nothing found" + (" in what could be looked at" if found.not_looked_at else ""),
    )
    for what in found.looked_at:
        print(f"looked at: {what}")
    for what in found.not_looked_at:
        print(f"not looked at: {what}")


def _more(finding: "Finding") -> str:
    lines = [*(f"  {each}" for each in finding.evidence), finding.remedy]
    if finding.settings:
        lines.append(f"Try: {' '.join(_setting(*each) for each in finding.settings.items())}")
    return "\n".join(lines)


def _setting(key: str, value: object) -> str:
    """Write a change as the command line of `manyheads train` takes it."""
    text = _toml(value)
    return f"{key}='{text}'" if " " in text else f"{key}={text}"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:g}" if isinstance(value, float) else str(value)
