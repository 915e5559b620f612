"""precision = "auto": measure whether fp32 or bf16 is faster.

On a CPU with bf16 instructions, bf16 multiplies large matrices several times as fast as fp32, but
small ones no faster. Other CPUs only imitate it, far too slowly to be measured.
"""

import math
import time
from copy import deepcopy

import torch
from torch import nn

from manyheads.errors import TrainingError
from manyheads.train.device import autocast, multiplies_bf16
from manyheads.train.train_config import Precision
from manyheads.train.training_task import B, Task

CANDIDATES: tuple[Precision, ...] = ("fp32", "bf16")
ROUNDS = 3


def measure(model: nn.Module, task: Task[B]) -> dict[Precision, float]:
    """Time forward and backward passes on a batch of the middle length; the model is not changed.

    Returns:
        The seconds per batch for each precision that the device has, the best of a few
        alternating rounds.

    Raises:
        TrainingError: there is no batch.
    """
    plan = task.plan(0)
    if not plan:
        raise TrainingError("There is nothing to train on: the training data is empty.")
    (batch,) = task.load(0, [sorted(plan, key=len)[len(plan) // 2]])
    device = next(model.parameters()).device
    copy = deepcopy(model).train()  # a forward pass may update running means
    candidates = CANDIDATES if multiplies_bf16(device) else CANDIDATES[:1]
    seconds: dict[Precision, list[float]] = {precision: [] for precision in candidates}
    with torch.random.fork_rng():
        for _ in range(1 + ROUNDS):  # the first is for warming up
            for precision in candidates:
                started = time.perf_counter()
                with autocast(device, precision):
                    loss = task.loss(copy, batch).sum
                loss.backward()
                loss.item()  # waits for the GPU
                seconds[precision].append(time.perf_counter() - started)
                copy.zero_grad(set_to_none=True)
    return {precision: min(times[1:]) for precision, times in seconds.items()}


def fastest(seconds: dict[Precision, float]) -> Precision:
    """Choose bf16 only if it is more than a tenth faster: fp32 is more exact."""
    return "bf16" if seconds.get("bf16", math.inf) < 0.9 * seconds["fp32"] else "fp32"
