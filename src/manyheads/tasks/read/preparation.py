"""From a recipe to what a run needs before its model."""

from pathlib import Path
from typing import Any

import numpy as np

from manyheads.data.even_sample import evenly_spaced
from manyheads.data.split_register import reject_test_split
from manyheads.data.tokenizers.characters import Characters
from manyheads.errors import DataError, RecipeError
from manyheads.fit.inputs import digest
from manyheads.predict.task_pipeline import Prepared, Say
from manyheads.project.base_recipe import Start
from manyheads.project.folder import ModelFolder, read_json, write_json
from manyheads.project.paths import find_model
from manyheads.tasks.read.printed_lines import LineSource, PrintedLines, SomeLines
from manyheads.tasks.read.recipe import ReadRecipe
from manyheads.tasks.read.task import ReadTask, letters


def prepare(recipe: ReadRecipe, out: Path, say: Say) -> Prepared:
    """Read or draw the lines; list their letters, or take those of the run."""
    train, valid = LineSource(recipe.data, recipe.image, recipe.render, recipe.seed).splits()
    for part in (train, valid):
        reject_test_split(part.hashes, part.origin)
        if part.left_out:
            what = "without a text or too wide"
            if part.missing:
                what = f"that no font has all characters of, such as {' '.join(part.missing[:8])}"
            say(f"left out {part.left_out:,} lines of {part.origin} {what}")
    stored = out / "characters.json"
    if stored.exists():
        characters = Characters(read_json(stored))
    else:
        characters = Characters.learn(map(letters, train.texts))
        if recipe.start is not None:  # its letters keep their ids
            known = start_folder(recipe.start).characters().alphabet
            new = [each for each in characters.alphabet if each not in known]
            characters = Characters(known + "".join(new))
            say(f"starting from {recipe.start.model}: {len(new):,} letters are new")
    say(f"{len(train):,} lines, {len(characters):,} letters")
    config: Any = recipe.config(vocabulary=len(characters))
    _refuse_narrow(train, config.column_width)
    some = evenly_spaced(len(valid), recipe.evaluate.limit or len(valid)).tolist()
    task = ReadTask(train, SomeLines(valid, some), characters, recipe.train, seed=recipe.seed)
    return Prepared(
        task,
        config,
        lambda folder: write_json(folder / "characters.json", characters.alphabet),
        {"data": digest(*train.hashes, *valid.hashes)},
    )


def start_folder(start: Start) -> ModelFolder:
    """Open the reader that a recipe starts from; refuse a model of another task."""
    folder = ModelFolder(find_model(start.model))
    if folder.recipe.task != "read":
        raise RecipeError(
            f"start.model: the task of {folder.path} is {folder.recipe.task!r}; a reader starts "
            "from a reader."
        )
    return folder


def _refuse_narrow(lines: PrintedLines, column_width: int) -> None:
    """Refuse lines if most have fewer columns than letters: no text could be read in them."""
    columns = np.ceil(lines.widths(0) / column_width)
    needed = np.array([len(letters(text)) for text in lines.texts])
    narrow = float((columns < needed).mean())
    if narrow > 0.5:
        raise DataError(
            f"{lines.origin}: {narrow:.0%} of the lines have fewer columns of {column_width} "
            "pixels than their texts have letters. Raise image.height, or lower a number of "
            "model.column_strides."
        )
