"""Run the experiments whose full result is not in docs/lab yet; an interrupted one goes on.

python scripts/labs.py              all that are missing, one after the other
python scripts/labs.py depth heads  these, if missing
python scripts/labs.py --draw       no experiments: figures and pages from the results again
python scripts/labs.py --conclude   sentences and tables too, from the trials of the results
"""

import json
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import torch

from manyheads.errors import ManyheadsError
from manyheads.labs.bench import Bench
from manyheads.labs.catalogue import CATALOGUE, find
from manyheads.labs.findings import Result
from manyheads.labs.run_experiment import RESULT, is_full, read, run_lab, write
from manyheads.memory import keep_freed_memory
from manyheads.strict_json import dumps

OUT = Path(__file__).parents[1] / "docs" / "lab"


def main() -> None:
    """Run what is missing; the failure of one does not stop the others."""
    words = sys.argv[1:]
    unknown = [
        word for word in words if word.startswith("-") and word not in ("--draw", "--conclude")
    ]
    if unknown:
        sys.exit(f"There is no option {unknown[0]}.\n\n{__doc__}")
    names = [word for word in words if not word.startswith("-")] or list(CATALOGUE)
    OUT.mkdir(parents=True, exist_ok=True)
    schema = json.dumps(RESULT.json_schema(), indent=1) + "\n"
    (OUT / "schema.json").write_text(schema, encoding="utf-8")
    failed = []
    keep_freed_memory()
    for name in names:
        find(name)
        if {"--draw", "--conclude"} & {*words}:
            if is_full(OUT / f"{name}.json"):
                result = read(OUT / f"{name}.json")
                write(concluded(result) if "--conclude" in words else result, OUT)
        elif is_full(OUT / f"{name}.json"):
            print(f"{name}: there")
        else:
            print(f"{name}: running")
            try:
                print(run_lab(name, OUT, say=print).conclusion)
            except ManyheadsError as error:
                if error.exit_code == 130:  # stopped by the user
                    raise
                print(f"{name}: {error}", file=sys.stderr)
                failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def concluded(kept: Result) -> Result:
    """Conclude from a result's trials as today's code does; nothing is measured."""
    lab = find(kept.lab)
    with tempfile.TemporaryDirectory() as folder:
        notebook = Path(folder) / "trials.jsonl"
        head = dumps({"size": kept.size, "torch": torch.__version__})
        trials = (json.dumps(asdict(trial)) for trial in kept.trials)
        notebook.write_text("\n".join([head, *trials, ""]), encoding="utf-8")
        bench = Bench(seeds=tuple(kept.seeds), notebook=notebook)
        found = lab.run(bench)
    if bench.trials != kept.trials:
        sys.exit(f"{kept.lab}: it would measure anew; run the experiment.")
    return replace(
        kept,
        method=lab.method,
        limits=lab.limits,
        conclusion=found.conclusion,
        tables=found.tables,
        panels=found.panels,
    )


if __name__ == "__main__":
    try:
        main()
    except ManyheadsError as error:
        sys.exit(str(error))
