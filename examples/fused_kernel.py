"""Time the fused attention kernel against the formula: docs/decisions/fused-kernel.md."""

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F

from manyheads.nn.attention import attention_weights

CASES = [  # batch, head, query, key, size, precision, gradients
    (256, 8, 25, 25, 64, torch.bfloat16, True),
    (16, 6, 197, 197, 64, torch.bfloat16, True),
    (1, 8, 2048, 2048, 64, torch.bfloat16, True),
    (8, 12, 197, 197, 64, torch.bfloat16, False),
    (64, 12, 197, 197, 64, torch.bfloat16, False),
    (8, 12, 577, 577, 64, torch.bfloat16, False),
    (256, 8, 25, 25, 64, torch.float32, True),
    (256, 8, 25, 25, 64, torch.float32, False),
    (256, 4, 65, 65, 32, torch.float32, False),
    (64, 8, 128, 128, 64, torch.float32, False),
    (8, 12, 197, 197, 64, torch.float32, False),
    (128, 8, 1, 25, 64, torch.bfloat16, False),
    (128, 8, 1, 25, 64, torch.float32, False),
]


def milliseconds(work: Callable[[], torch.Tensor], *, gradients: bool) -> float:
    """Take the median of five rounds after one to warm up."""
    rounds = []
    for _ in range(6):
        started = time.perf_counter()
        answer = work()
        if gradients:
            answer.sum().backward()
        rounds.append(time.perf_counter() - started)
    return 1000 * median(rounds[1:])


def _formula(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return attention_weights(q, k) @ v


def main() -> None:
    """Print a line a case."""
    print("(batch, head, query, key, size)  precision, gradients: fused, formula in ms")
    for batch, head, query, key, size, dtype, gradients in CASES:
        q, k, v = (
            torch.randn(batch, head, tokens, size, dtype=dtype, requires_grad=gradients)
            for tokens in (query, key, key)
        )
        fused = milliseconds(partial(F.scaled_dot_product_attention, q, k, v), gradients=gradients)
        formula = milliseconds(partial(_formula, q, k, v), gradients=gradients)
        print(
            f"{(batch, head, query, key, size)}  {str(dtype).removeprefix('torch.')}, "
            f"{gradients}: {fused:.2f}, {formula:.2f}"
        )


if __name__ == "__main__":
    main()
