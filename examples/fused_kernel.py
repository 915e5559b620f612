"""Time the fused attention kernel against the formula: docs/decisions/fused-kernel.md."""

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.nn.attention.softmax import attention_weights

CASES = [  # batch, head, query, key, size, precision, gradients
    (256, 8, 25, 25, 64, torch.bfloat16, True),
    (32, 6, 256, 256, 64, torch.bfloat16, True),
    (8, 8, 384, 384, 64, torch.bfloat16, True),
    (8, 12, 197, 197, 64, torch.bfloat16, False),
    (32, 6, 256, 256, 64, torch.bfloat16, False),
    (32, 12, 197, 197, 64, torch.bfloat16, False),
    (8, 12, 577, 577, 64, torch.bfloat16, False),
    (256, 8, 25, 25, 64, torch.float32, True),
    (256, 8, 25, 25, 64, torch.float32, False),
    (8, 12, 197, 197, 64, torch.float32, False),
    (128, 8, 1, 25, 64, torch.bfloat16, False),
    (128, 8, 1, 25, 64, torch.float32, False),
]
ROUNDS = 15


def milliseconds(work: Callable[[], Tensor], *, gradients: bool) -> float:
    """Take the median of the rounds after one to warm up."""
    rounds = []
    for _ in range(1 + ROUNDS):
        started = time.perf_counter()
        with torch.inference_mode(not gradients):
            answer = work()
        if gradients:
            answer.backward(torch.ones_like(answer))
        rounds.append(time.perf_counter() - started)
    return 1000 * median(rounds[1:])


def _formula(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return attention_weights(q, k) @ v


def main() -> None:
    """Print a row a case."""
    print("| (batch, head, query, key, size) | fused, ms | formula, ms |\n|---|---|---|")
    for batch, head, query, key, size, dtype, gradients in CASES:
        q, k, v = (  # as a projection gives them: heads side by side in a token
            torch.randn(batch, tokens, head, size, dtype=dtype, requires_grad=gradients)
            for tokens in (query, key, key)
        )
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        fused, formula = (
            milliseconds(partial(way, q, k, v), gradients=gradients)
            for way in (F.scaled_dot_product_attention, _formula)
        )
        precision = "bf16" if dtype == torch.bfloat16 else "fp32"
        print(
            f"| {precision}, {'with' if gradients else 'without'} gradients: "
            f"{(batch, head, query, key, size)} | {fused:.2g} | {formula:.2g} |"
        )


if __name__ == "__main__":
    main()
