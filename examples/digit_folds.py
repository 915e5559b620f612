"""Train the digits recipe on five stratified folds and print the accuracy of each and their mean.

    python examples/digit_folds.py

The shipped model was chosen by looking at one fixed split, so this is the fairer number. Takes five
times as long as `manyheads train digits`.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold

from manyheads.cli.progress import ProgressBar
from manyheads.data.images.digits import read_digits
from manyheads.models.presets import build
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import find_recipe
from manyheads.streams import stream
from manyheads.tasks.classify.recipe import ClassifyRecipe
from manyheads.tasks.classify.task import ClassifyTask
from manyheads.train.loop import fit

FOLDS = 5


def accuracies(overrides: tuple[str, ...] = ()) -> list[float]:
    """Train and measure every fold; return percentages."""
    recipe = read_recipe(find_recipe("digits"), overrides)
    assert isinstance(recipe, ClassifyRecipe)
    digits = read_digits()
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    found = []
    for train, held_out in folds.split(np.zeros(len(digits)), digits.labels):
        task = ClassifyTask(
            digits.select(train),
            digits.select(held_out),
            recipe.image,
            recipe.augment,
            recipe.train,
            seed=recipe.seed,
        )
        torch.manual_seed(stream(recipe.seed, "init"))
        model = build(recipe.config(classes=len(digits.classes)))
        with tempfile.TemporaryDirectory() as folder, ProgressBar() as bar:
            fit(
                model,
                task,
                recipe.train,
                Path(folder),
                seed=recipe.seed,
                environment={},
                save_best=lambda _model: None,
                observer=bar,
            )
        model.eval()
        found.append(task.evaluate(model)["accuracy"])
    return found


if __name__ == "__main__":
    results = accuracies()
    print("  ".join(f"{accuracy:.2f}" for accuracy in results))
    print(f"mean {np.mean(results):.2f}, standard deviation {np.std(results):.2f}")
