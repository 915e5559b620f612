"""Run an experiment, and write its result, figure and page."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError

from manyheads.errors import FolderError, InterruptedRunError, MissingExtraError, UsageError
from manyheads.files import write_text
from manyheads.labs.bench import TRIALS, Bench, Say
from manyheads.labs.catalogue import find
from manyheads.labs.findings import SCHEMA, Result, Scale
from manyheads.labs.result_page import page
from manyheads.lens.plot.panel_plot import draw, require
from manyheads.project.folder import versions
from manyheads.strict_json import dumps
from manyheads.train.device import best_device, limited_threads, processor

RESULT: TypeAdapter[Result] = TypeAdapter(Result)


def run_lab(
    name: str,
    out: Path,
    *,
    scale: Scale = "full",
    seeds: int | None = None,
    root: str | None = None,
    threads: int = 1,
    say: Say = str,  # no output
) -> Result:
    """Run an experiment; continue an interrupted run of the same sizes.

    It writes NAME.json, NAME.md and, where matplotlib is installed, NAME.png into the folder `out`.
    `seeds` of None are the experiment's own number, `root` of None is MANYHEADS_DATA or data/.
    Small models gain little from more than one thread. `say` is called with a message after each
    trial.

    Raises:
        NotFoundError: the experiment or its data do not exist.
        UsageError: less than one seed, or a quick run would replace a full result.
        MissingExtraError: a package that the experiment needs is missing.
        InterruptedRunError: stopped by Ctrl-C; finished trials are saved.
    """
    lab = find(name)
    if seeds is not None and seeds < 1:
        raise UsageError(f"seeds is {seeds}: it must be at least 1.")
    count = seeds or {"full": lab.seeds, "quick": min(lab.seeds, 2), "smoke": 1}[scale]
    notebook, chosen = out / f"{name}{TRIALS}", tuple(range(1, count + 1))
    bench = Bench(scale=scale, seeds=chosen, root=root, notebook=notebook, say=say)
    if missing := not_drawn():
        say(f"{name}.png is not drawn: {missing}.")
    if scale != "full" and is_full(out / f"{name}.json"):
        raise UsageError(
            f"{out / name}.json is the result of a full run, and a {scale} run would replace it: "
            "choose another folder (`out`), or remove it."
        )
    if seeds is not None and lab.seeds == 1:
        say("This experiment has no randomness: more seeds change nothing.")
    try:
        with limited_threads(threads):
            findings = lab.run(bench)
            machine = _machine()
    except InterruptedRunError as error:
        raise InterruptedRunError(
            f"{error} Trials that are kept in {notebook}: {len(bench.trials)}. The same command "
            "goes on."
        ) from error
    command = f"manyheads lab {name}" + (" --quick" if scale == "quick" else "")
    result = Result(
        schema=SCHEMA,
        lab=name,
        atlas=list(lab.atlas),
        question=lab.question,
        method=lab.method,
        limits=lab.limits,
        scale=scale,
        size=bench.size,
        seeds=list(bench.seeds),
        conclusion=findings.conclusion,
        tables=findings.tables,
        panels=findings.panels,
        trials=bench.trials,
        machine=machine,
        versions=versions(),
        minutes=round(sum(trial.seconds for trial in bench.trials) / 60, 2),
        cpu_minutes=round(sum(trial.cpu for trial in bench.trials) / 60, 2),
        date=datetime.now(UTC).date().isoformat(),
        command=command if seeds is None else f"{command} --seeds {seeds}",
    )
    write(result, out)
    notebook.unlink(missing_ok=True)  # the result has all of it
    return result


def not_drawn() -> MissingExtraError | None:
    """Say why figures cannot be drawn; None: they can."""
    try:
        require()
    except MissingExtraError as missing:
        return missing
    return None


def write(result: Result, out: Path) -> None:
    """Write a result, its figure and its page."""
    drawn = not_drawn() is None
    if drawn:
        draw(result.panels, out / f"{result.lab}.png", title=result.question)
    write_text(out / f"{result.lab}.md", page(result, drawn=drawn))
    # Last: if it exists, all files are complete.
    plain = RESULT.dump_python(result, mode="json")
    write_text(out / f"{result.lab}.json", dumps(plain, indent=1) + "\n")


def read(path: Path) -> Result:
    """Read a result.

    Raises:
        FolderError: the file is damaged, or of another version.
    """
    try:
        return RESULT.validate_json(path.read_bytes())
    except ValidationError as error:
        detail = error.errors()[0]
        where = ".".join(map(str, detail["loc"]))
        raise FolderError(
            f"{path} is not a result of {SCHEMA}: {where}: {detail['msg']}. "
            f"Run `manyheads lab {path.stem}` again."
        ) from error


def is_full(path: Path) -> bool:
    """Return whether there is a readable result of a full run."""
    try:
        return read(path).scale == "full"
    except (FileNotFoundError, FolderError):
        return False


def _machine() -> dict[str, Any]:
    """Return the hardware that the times of a result depend on."""
    device = best_device()
    machine: dict[str, Any] = {"processor": processor(), "cores": os.cpu_count() or 1}
    machine["threads"] = torch.get_num_threads()
    if device.type == "cuda":
        machine["gpu"] = torch.cuda.get_device_name(device)
    return machine
