"""The training loop and its parts. It uses a Task protocol, but no model, data set or metric.

Called as a function, `manyheads.train(recipe)` trains a recipe: see `fit/run_training.py`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from manyheads.lazy import lazy

if TYPE_CHECKING:
    from manyheads.train.class_losses import binary_cross_entropy, distillation, soft_cross_entropy
    from manyheads.train.loop import Observer, fit
    from manyheads.train.losses import smoothed_cross_entropy
    from manyheads.train.optim import Optimizer, adamw, muon, optimizer
    from manyheads.train.schedule import (
        Schedule,
        constant,
        cosine,
        inverse_sqrt,
        learning_rate,
        linear,
    )
    from manyheads.train.train_config import EarlyStop, Restart, TrainConfig
    from manyheads.train.training_task import Batch, Loss, Task

__all__ = ["Batch", "EarlyStop", "Loss", "Observer", "Optimizer", "Restart", "Schedule", "Task"]
__all__ += ["TrainConfig", "adamw", "binary_cross_entropy", "constant", "cosine", "distillation"]
__all__ += ["fit", "inverse_sqrt", "learning_rate", "linear", "muon", "optimizer"]
__all__ += ["smoothed_cross_entropy", "soft_cross_entropy"]

__getattr__ = lazy(__name__, __file__)


class _Callable(ModuleType):
    """A package and a function under one name: docs/decisions/callable-train.md."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Train a recipe; by name, because this package must not depend on what is above it."""
        return import_module("manyheads.fit.run_training").train(*args, **options)


sys.modules[__name__].__class__ = _Callable
