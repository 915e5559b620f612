"""The parts that are our own although torch has them: dropout, smoothed loss, linear layer."""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.protocol import Case, Contender
from benchmarks.work import answering
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.linear import Linear
from manyheads.train.losses import smoothed_cross_entropy

TITLE = "Parts of our own"
TOKENS = 2048
VOCABULARY = 10_000  # of Multi30k's recipe
DIM = 512
SMOOTHING = 0.1
# Rows, and outputs and inputs of a layer: a decoding step and a whole batch, tiny and base.
PRODUCTS = ((1, 384, 128), (32, 384, 128), (32, 2048, 512), (640, 2048, 512), (32, 16_000, 512))
CALLS = 100
P = 0.3


def cases() -> Iterator[Case]:
    """Yield a case a part: forward and backward."""
    targets = torch.randint(VOCABULARY, (TOKENS,))
    yield _case(
        f"smoothed cross-entropy, {TOKENS} x {VOCABULARY}",
        torch.randn(TOKENS, VOCABULARY, requires_grad=True),
        lambda x: smoothed_cross_entropy(x, targets, SMOOTHING),
        lambda x: F.cross_entropy(x, targets, label_smoothing=SMOOTHING, reduction="sum"),
    )
    dropout = Dropout(P).train()
    yield _case(
        f"dropout, {TOKENS} x {DIM}",
        torch.randn(TOKENS, DIM, requires_grad=True),
        lambda x: dropout(x).sum(),
        lambda x: F.dropout(x, P, training=True).sum(),
    )
    for rows, outputs, inputs in PRODUCTS:
        yield _product(rows, outputs, inputs)


def _case(
    title: str, x: Tensor, ours: Callable[[Tensor], Tensor], theirs: Callable[[Tensor], Tensor]
) -> Case:
    def both_ways(loss: Callable[[Tensor], Tensor]) -> Callable[[], object]:
        def work() -> None:
            x.grad = None
            loss(x).backward()

        return work

    contenders = [
        Contender("manyheads", "fp32", both_ways(ours)),
        Contender("torch", "fp32", both_ways(theirs)),
    ]
    return Case(title=title, unit="tokens/s", amount=TOKENS, contenders=contenders)


def _product(rows: int, outputs: int, inputs: int) -> Case:
    x = torch.randn(rows, inputs)

    def repeat(layer: nn.Module, dtype: torch.dtype) -> None:
        given = x.to(dtype)
        for _ in range(CALLS):
            layer(given)

    layers = {"manyheads": Linear(inputs, outputs), "torch": nn.Linear(inputs, outputs)}
    return Case(
        title=f"linear layer without gradients, {rows} x ({outputs}, {inputs})",
        unit="rows/s",
        amount=rows * CALLS,
        flops=2 * rows * outputs * inputs * CALLS,
        contenders=[
            Contender(name, precision, answering(layer, precision, repeat))
            for name, layer in layers.items()
            for precision in ("fp32", "bf16 weights")
        ],
    )
