"""Floating-point operations of a pass, counted where torch's functions are called.

torch has a counter of its own, but its first use imports the compiler, for seconds.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode


class OperationCount(TorchFunctionMode):
    """Count the products, which are nearly everything, of what runs inside `with`.

    Run with gradients on: packed weights are read by an operator that cannot be seen here.
    """

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        answer = func(*args, **(kwargs or {}))
        if func in (F.linear, F.conv2d):
            self.total += 2 * answer.numel() * args[1][0].numel()
        elif func in (torch.matmul, Tensor.matmul, Tensor.__matmul__):
            self.total += 2 * answer.numel() * args[0].shape[-1]
        elif func is F.scaled_dot_product_attention:
            q, k, v = args[:3]
            self.total += 2 * math.prod(q.shape[:-1]) * k.shape[-2] * (q.shape[-1] + v.shape[-1])
        elif func in (torch._VF.lstm, torch._VF.gru, torch._VF.rnn_tanh):
            *_, weights = (each for each in args if isinstance(each, list | tuple))
            tokens = args[0].numel() // args[0].shape[-1]
            self.total += 2 * tokens * sum(each.numel() for each in weights)
        return answer
