"""Muon with all matrices of a shape in one product is torch's Muon, which takes one at a time."""

import pytest
import torch
from torch import Tensor, nn

from manyheads.train import batched_muon
from manyheads.train.batched_muon import Muon, orthogonalized

DEFAULTS = (3.4445, -4.7750, 2.0315), 5, 1e-7  # those of torch
SHAPES = [(24, 8), (8, 8), (8, 24), (24, 8), (8, 24)]


def test_the_updates_are_those_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's own products are in bf16, wherever."""
    monkeypatch.setattr(batched_muon, "multiplies_bf16", lambda device: True)
    drawn = [torch.randn(shape, generator=torch.manual_seed(1)) for shape in SHAPES]
    ours, theirs = ([nn.Parameter(x.clone()) for x in drawn] for _ in range(2))
    optimizers = [
        Muon(ours, lr=0.01, weight_decay=0.1),
        torch.optim.Muon(theirs, lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
    ]
    for _ in range(3):
        for mine, other in zip(ours[:-1], theirs[:-1], strict=True):  # the last has no gradient
            mine.grad = torch.randn_like(mine)
            other.grad = mine.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-4)  # products in bf16
    states = [{"momentum_buffer"}] * 4
    assert [set(optimizers[0].state[p]) for p in ours[:-1]] == states  # that of a checkpoint


def test_filters_are_rows_of_a_matrix() -> None:
    """Of all that they see: channels, rows and columns."""
    drawn = torch.randn(6, 4, 3, 3, generator=torch.manual_seed(3))
    filters, rows = nn.Parameter(drawn.clone()), nn.Parameter(drawn.flatten(1))
    optimizers = [Muon([weight], lr=0.01, weight_decay=0.1) for weight in (filters, rows)]
    for _ in range(2):
        filters.grad = torch.randn_like(filters)
        rows.grad = filters.grad.flatten(1)
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(filters.flatten(1), rows, rtol=0, atol=0)


@pytest.mark.parametrize("bf16", [True, False])
def test_singular_values_end_near_one(monkeypatch: pytest.MonkeyPatch, bf16: bool) -> None:
    """In bf16, and in fp32 where a processor has no instructions for bf16."""
    monkeypatch.setattr(batched_muon, "multiplies_bf16", lambda device: bf16)
    x: Tensor = torch.randn(3, 16, 40, generator=torch.manual_seed(2))
    assert orthogonalized(x, *DEFAULTS).dtype == (torch.bfloat16 if bf16 else torch.float32)
    values = torch.linalg.svdvals(orthogonalized(x, *DEFAULTS).float())
    assert values.min() > 0.5
    assert values.max() < 1.5
    tall = orthogonalized(x.mT, *DEFAULTS)
    torch.testing.assert_close(tall, orthogonalized(x, *DEFAULTS).mT)
