"""Run an experiment, and write its result, figure and page."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError

from manyheads.app.folder import versions
from manyheads.errors import FolderError, InterruptedRunError, UsageError
from manyheads.lab.bench import TRIALS, Bench, Say, Scale
from manyheads.lab.catalogue import entry, find
from manyheads.lab.findings import SCHEMA, Result
from manyheads.lab.page import page
from manyheads.lens.panel_plot import draw, require
from manyheads.train.device import best_device, processor, set_threads

RESULT: TypeAdapter[Result] = TypeAdapter(Result)


def run_lab(
    name: str,
    out: Path,
    *,
    scale: Scale = "full",
    seeds: int | None = None,
    root: str | None = None,
    threads: int = 1,
    say: Say = str,  # to nobody
) -> Result:
    """Run an experiment; go on where an interrupted run of the same sizes stopped.

    Args:
        name: of the experiment.
        out: the folder for NAME.json, NAME.png and NAME.md.
        scale: how much is measured.
        seeds: how many; the experiment's own number if None.
        root: the folder of data sets; else MANYHEADS_DATA, else data/.
        threads: of tensor operations; models this small gain little from more than one.
        say: told of each trial.

    Raises:
        NotFoundError: no such experiment, or its data are not there.
        UsageError: fewer seeds than one, or a quick run where a full result is.
        MissingExtraError: a package is missing, matplotlib for one.
        InterruptedRunError: stopped by Ctrl-C; what was measured is kept.
    """
    lab, about = find(name), entry(name)
    if seeds is not None and seeds < 1:
        raise UsageError(f"seeds is {seeds}: it must be at least 1.")
    count = seeds or {"full": lab.seeds, "quick": min(lab.seeds, 2), "smoke": 1}[scale]
    notebook = out / f"{name}{TRIALS}"
    bench = Bench(
        scale=scale,
        seeds=tuple(range(1, count + 1)),
        root=root,
        notebook=notebook,
        say=say,
    )
    require()
    if scale != "full" and is_full(out / f"{name}.json"):
        raise UsageError(
            f"{out / name}.json is the result of a full run, and a {scale} one would take its "
            "place: give another folder (--out), or remove it."
        )
    if seeds is not None and lab.seeds == 1:
        say("Nothing in this experiment depends on chance: more seeds change nothing.")
    before = torch.get_num_threads()
    set_threads(threads)
    try:
        found = lab.run(bench)
        machine = _machine()
    except InterruptedRunError as error:
        raise InterruptedRunError(
            f"{error} Trials that are kept in {notebook}: {len(bench.trials)}. The same command "
            "goes on."
        ) from error
    finally:
        set_threads(before)
    result = Result(
        schema=SCHEMA,
        lab=name,
        atlas=list(about.atlas),
        question=about.question,
        method=lab.method,
        limits=lab.limits,
        scale=scale,
        size=bench.size,
        seeds=list(bench.seeds),
        conclusion=found.conclusion,
        tables=found.tables,
        panels=found.panels,
        trials=bench.trials,
        machine=machine,
        versions=versions(),
        minutes=round(sum(trial.seconds for trial in bench.trials) / 60, 2),
        cpu_minutes=round(sum(trial.cpu for trial in bench.trials) / 60, 2),
        date=datetime.now(UTC).date().isoformat(),
        command=_command(name, scale, seeds),
    )
    write(result, out)
    notebook.unlink(missing_ok=True)  # the result has all of it
    return result


def write(result: Result, out: Path) -> None:
    """Write a result, its figure and its page."""
    out.mkdir(parents=True, exist_ok=True)
    draw(result.panels, out / f"{result.lab}.png", title=result.question)
    (out / f"{result.lab}.md").write_text(page(result), encoding="utf-8")
    temporary = out / f"{result.lab}.json.tmp"
    temporary.write_text(as_json(result), encoding="utf-8")
    temporary.replace(out / f"{result.lab}.json")  # last: where it is, all is


def as_json(result: Result) -> str:
    """Write a result as JSON, a trial and a row of a table on a line each."""
    plain: dict[str, Any] = RESULT.dump_python(result, mode="json")
    return json.dumps(plain, ensure_ascii=False, indent=1) + "\n"


def read(path: Path) -> Result:
    """Read a result.

    Raises:
        FolderError: it is damaged, or of another version.
    """
    try:
        return RESULT.validate_json(path.read_bytes())
    except ValidationError as error:
        detail = error.errors()[0]
        where = ".".join(map(str, detail["loc"]))
        raise FolderError(
            f"{path} is no result of {SCHEMA}: {where}: {detail['msg']}. "
            f"Run `manyheads lab {path.stem}` again."
        ) from error


def is_full(path: Path) -> bool:
    """Say whether there is a full result that can be read."""
    try:
        return read(path).scale == "full"
    except (FileNotFoundError, FolderError):
        return False


def _command(name: str, scale: Scale, seeds: int | None) -> str:
    quick = " --quick" if scale == "quick" else ""
    return f"manyheads lab {name}{quick}" + ("" if seeds is None else f" --seeds {seeds}")


def _machine() -> dict[str, Any]:
    """Say what the times of a result depend on."""
    device = best_device()
    found: dict[str, Any] = {
        "processor": processor(),
        "cores": os.cpu_count() or 1,
        "threads": torch.get_num_threads(),
    }
    if device.type == "cuda":
        found["gpu"] = torch.cuda.get_device_name(device)
    return found
