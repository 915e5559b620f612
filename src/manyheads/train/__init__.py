"""The training loop and its parts. It uses a Task protocol, but no model, data set or metric.

Called as a function, `manyheads.train(recipe)` trains a recipe: see `fit/run_training.py`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from manyheads.lazy import lazy

HOMES = {
    "train.class_losses": "binary_cross_entropy distillation soft_cross_entropy",
    "train.loop": "Observer fit",
    "train.losses": "smoothed_cross_entropy",
    "train.optim": "Optimizer adamw muon optimizer",
    "train.schedule": "Schedule constant cosine inverse_sqrt learning_rate linear",
    "train.train_config": "EarlyStop Restart TrainConfig",
    "train.training_task": "Batch Loss Task",
}
__all__, __getattr__, __dir__ = lazy(__name__, HOMES)


class _Callable(ModuleType):
    """A package and a function under one name: docs/decisions/callable-train.md."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Train a recipe; by name, because this package must not depend on what is above it."""
        return import_module("manyheads.fit.run_training").train(*args, **options)


sys.modules[__name__].__class__ = _Callable
