"""Public names, for type checkers and editors; programs import each when it is used."""

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
