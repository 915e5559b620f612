"""The two parts that are our own although torch has them: dropout and the smoothed loss."""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.protocol import Case, Contender
from manyheads.nn.dropout import Dropout
from manyheads.train.losses import smoothed_cross_entropy

TITLE = "Parts of our own"
TOKENS = 2048
VOCABULARY = 10_000  # of Multi30k's recipe
DIM = 512
SMOOTHING = 0.1
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
