"""How long an update takes, for batches of new and of known sizes.

MANYHEADS_DATA=FOLDER python -m benchmarks.update_time multi30k-en-de train.max_tokens=16384

On a GPU with and without cuDNN's attention, which plans anew for every size of a batch.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.base_recipe import read_recipe
from manyheads.project.paths import find_recipe
from manyheads.train.device import best_device
from manyheads.train.loop import update
from manyheads.train.optim import optimizer


def main() -> None:
    """Print milliseconds an update."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe")
    parser.add_argument("changes", nargs="*")
    parser.add_argument("--batches", type=int, default=25)
    given = parser.parse_intermixed_args()
    recipe = read_recipe(find_recipe(given.recipe), given.changes)
    pipeline = pipeline_of(recipe)
    with tempfile.TemporaryDirectory() as folder:
        task, config, *_ = pipeline.prepare(recipe, Path(folder), print)
    device = best_device()
    batches = list(task.load(0, task.plan(0)[: given.batches]))
    for planned in (False, True) if device.type == "cuda" else (False,):
        torch.backends.cuda.enable_cudnn_sdp(planned)
        model = pipeline.build(recipe, config).to(device)
        made = optimizer(model, recipe.train)
        update(model, task, batches[:1], recipe.train, made, 1, device)

        def seconds(some: Sequence[Any], model: Any = model, made: Any = made) -> float:
            began = time.perf_counter()
            for batch in some:
                update(model, task, [batch], recipe.train, made, 1, device)
            if device.type == "cuda":
                torch.cuda.synchronize()
            return 1000 * (time.perf_counter() - began) / len(some)

        name = f"{device.type}{', cuDNN attention' * planned}"
        new, known = seconds(batches[1:]), seconds(batches[1:])
        print(
            f"{name}: {new:.1f} ms an update with batches of new sizes, {known:.1f} ms known ones"
        )


if __name__ == "__main__":
    main()
