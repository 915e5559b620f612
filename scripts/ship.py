"""Put a finished run among the shipped models: everything but the training state.

python scripts/ship.py runs/digits digits
python scripts/ship.py                       # writes the cards of all shipped models anew
"""

import shutil
import sys
from pathlib import Path

from manyheads.project.card import write_card
from manyheads.project.folder import ModelFolder

PRETRAINED = Path(__file__).parents[1] / "src" / "manyheads" / "pretrained"


def main() -> None:
    """Check the run and copy its files."""
    if len(sys.argv) == 1:
        for path in sorted(PRETRAINED.iterdir()):
            write_card(ModelFolder(path))
        return
    run, name = Path(sys.argv[1]), sys.argv[2]
    folder = ModelFolder(run)
    if (stored := folder.recipe.train.save_dtype) not in ("float16", "int8"):
        sys.exit(f"{run} is stored as {stored}: ship float16 or int8 (train.save_dtype).")
    target = PRETRAINED / name
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(run.iterdir()):
        if path.is_file() and not path.name.startswith("."):
            shutil.copyfile(path, target / path.name)
    write_card(ModelFolder(target))  # with its new name
    size = sum(path.stat().st_size for path in target.iterdir())
    print(f"{target.name}: {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
