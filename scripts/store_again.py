"""Copy a model folder with its weights in another type, without the scores of the old weights.

python scripts/store_again.py runs/en-de int8 runs/en-de-int8
"""

import shutil
import sys
from pathlib import Path

from manyheads.files import write_text
from manyheads.project.base_recipe import read_recipe, write_recipe
from manyheads.project.card import write_card
from manyheads.project.folder import (
    ModelFolder,
    read_json,
    refuse_used,
    write_json,
    write_manifest,
    write_weights,
)
from manyheads.project.paths import find_model


def store_again(model: str, dtype: str, out: Path) -> None:
    """Write the copy, and print the size of both.

    Raises:
        NotFoundError: no such model.
        RecipeError: no such type.
        FolderError: the model's folder is damaged.
        UsageError: `out` is in use.
    """
    refuse_used(out)
    folder = ModelFolder(find_model(model))
    left = shutil.ignore_patterns("state", "events", "engines", "evaluations.jsonl", ".manyheads-*")
    shutil.copytree(folder.path, out, ignore=left, dirs_exist_ok=True)
    recipe = read_recipe(folder.path / "recipe.toml", [f"train.save_dtype={dtype}"], stored=True)
    write_weights(out, folder.model(), dtype)
    write_text(out / "recipe.toml", write_recipe(recipe, recipe.config()))
    write_manifest(out, recipe, folder.manifest["precision"])
    written = read_json(out / "manyheads.json")
    write_json(out / "manyheads.json", folder.manifest | written)
    write_card(ModelFolder(out))
    for path in (folder.path, out):
        print(f"{path}: {(path / 'model.safetensors').stat().st_size / 1e6:.2f} MB of weights")


if __name__ == "__main__":
    store_again(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
