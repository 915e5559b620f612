"""What the contenders of several benchmarks have in common: a forward pass, a training step."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from types import SimpleNamespace
from typing import Any, Literal, TypeVar, cast

import torch
from torch import nn

from manyheads.nn.layers.linear import pack
from manyheads.train import optim
from manyheads.train.device import autocast
from manyheads.train.loop import update
from manyheads.train.train_config import Precision as AutocastType
from manyheads.train.train_config import TrainConfig
from manyheads.train.training_task import Loss, Task

B = TypeVar("B")
Call = Callable[[Any, torch.dtype], object]  # a model, and the type of its weights
Precision = Literal["fp32", "bf16 autocast", "bf16 weights"]

CPU = torch.device("cpu")
INFERENCE: tuple[Precision, ...] = ("fp32", "bf16 autocast", "bf16 weights")
TRAINING: tuple[Precision, ...] = ("fp32", "bf16 autocast")


def answering(model: nn.Module, precision: Precision, call: Call) -> Callable[[], object]:
    """Make the work of calling a model in evaluation."""
    dtype = torch.bfloat16 if precision == "bf16 weights" else torch.float32
    ready = pack(deepcopy(model).to(dtype).eval())

    def work() -> object:
        with torch.inference_mode(), autocast(CPU, _autocast_type(precision)):
            return call(ready, dtype)

    return work


def learning(
    model: nn.Module,
    precision: Precision,
    batches: Sequence[B],
    loss: Callable[[nn.Module, B], Loss],
) -> Callable[[], None]:
    """Make the work of one update a batch, ours or a peer's, by the training loop's own update."""
    ready = deepcopy(model)
    config = TrainConfig(precision=_autocast_type(precision))
    optimizer = optim.optimizer(ready, config)
    # Of a task, an update uses the loss, and the description of a batch that fails.
    task = cast(Task[Any], SimpleNamespace(loss=loss, describe=str))

    def work() -> None:
        for batch in batches:
            update(ready, task, [batch], config, optimizer, 1, CPU)

    return work


def _autocast_type(precision: Precision) -> AutocastType:
    return "bf16" if precision == "bf16 autocast" else "fp32"
