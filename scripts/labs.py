"""Run the experiments whose full result is not in docs/lab yet; an interrupted one goes on.

python scripts/labs.py              all that are missing, one after the other
python scripts/labs.py depth heads  these, if missing
python scripts/labs.py --draw       no experiments: figures and pages from the results again
"""

import json
import sys
from pathlib import Path

from manyheads.errors import ManyheadsError
from manyheads.labs.catalogue import CATALOGUE, entry
from manyheads.labs.run import RESULT, is_full, read, run_lab, write
from manyheads.memory import keep_freed_memory

OUT = Path(__file__).parents[1] / "docs" / "lab"


def main() -> None:
    """Run what is missing; the failure of one does not stop the others."""
    words = sys.argv[1:]
    unknown = [word for word in words if word.startswith("-") and word != "--draw"]
    if unknown:
        sys.exit(f"There is no option {unknown[0]}.\n\n{__doc__}")
    names = [word for word in words if not word.startswith("-")] or list(CATALOGUE)
    OUT.mkdir(parents=True, exist_ok=True)
    schema = json.dumps(RESULT.json_schema(), indent=1) + "\n"
    (OUT / "schema.json").write_text(schema, encoding="utf-8")
    failed = []
    keep_freed_memory()
    for name in names:
        entry(name)
        if "--draw" in words:
            if is_full(OUT / f"{name}.json"):
                write(read(OUT / f"{name}.json"), OUT)
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


if __name__ == "__main__":
    try:
        main()
    except ManyheadsError as error:
        sys.exit(str(error))
