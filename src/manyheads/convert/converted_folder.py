"""The model folder of converted weights, and what its user is told."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from manyheads.files import new_folder, write_text
from manyheads.models.convert.foreign import State
from manyheads.models.model_config import ModelConfig
from manyheads.models.sized_tables import Size
from manyheads.project.base_recipe import Recipe, write_recipe
from manyheads.project.card import write_card
from manyheads.project.folder import ModelFolder, write_manifest, write_tensors


class ConvertedImages(NamedTuple):
    """What was written, and what its user should know."""

    folder: Path
    parameters: int
    classes: int  # 0 where there is no classifier
    size: Size
    remarks: list[str]
    task: str = "classify"


@contextmanager
def model_folder(out: Path, recipe: Recipe, config: ModelConfig, state: State) -> Iterator[Path]:
    """Write a model folder; inside the context its caller adds the files of its kind of input."""
    with new_folder(out) as folder:
        yield folder
        write_tensors(folder, state)
        write_text(folder / "recipe.toml", write_recipe(recipe, config))
        write_manifest(folder, recipe)
        ModelFolder(folder).recipe.config()  # while nothing is left behind
    write_card(ModelFolder(out))
