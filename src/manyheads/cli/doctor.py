"""manyheads doctor."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from manyheads.cli.options import Device, Remote, Threads
from manyheads.cli.printed_answers import print_findings, print_json, warn

if TYPE_CHECKING:
    from manyheads.doctor.diagnose import Diagnosis
    from manyheads.doctor.finding import Finding


def run(
    name: str,
    plot: Path | None = None,
    remote: Remote = False,
    json: bool = False,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Report problems of a run: with evidence, and with what to change.

    Exit code 1 with errors.
    """
    from manyheads.cli.terminal import waiting
    from manyheads.doctor.diagnose import diagnose
    from manyheads.project.folder import own_files
    from manyheads.project.paths import checked_name, find_model, make_room

    if plot is not None:
        checked_name(plot, {".png": "an image"})
        make_room(plot, *own_files(find_model(name)))
    with waiting(f"examining {name}"):
        diagnosis = diagnose(name, remote=remote, device=device, threads=threads)
    if json:
        print_json(diagnosis.as_json())
    else:
        _print(diagnosis)
    if plot is not None:
        diagnosis.plot(plot)
        warn(f"wrote {plot}")
    if diagnosis.errors:
        raise typer.Exit(1)


def _print(diagnosis: "Diagnosis") -> None:
    if diagnosis.steps is None:
        where = "trained elsewhere"
    elif diagnosis.finished:
        where = f"{diagnosis.step:,} steps"
    else:
        where = f"step {diagnosis.step:,} of {diagnosis.steps:,}, unfinished"
    print_findings(
        f"{diagnosis.path} ({diagnosis.task}, {where})",
        [
            (each.severity, None, "", f"{each.what} [{each.kind}]", _more(each))
            for each in diagnosis.findings
        ],
        none="nothing found" + (" in what could be looked at" if diagnosis.not_looked_at else ""),
    )
    for what in diagnosis.looked_at:
        print(f"looked at: {what}")
    for what in diagnosis.not_looked_at:
        print(f"not looked at: {what}")


def _more(finding: "Finding") -> str:
    from manyheads.doctor.finding import settings_text

    lines = [*(f"  {each}" for each in finding.evidence), finding.remedy]
    if finding.settings:
        lines.append(f"Try: {settings_text(finding.settings)}")
    return "\n".join(lines)
