"""Gates on heads, as the benchmark of pruning trains them."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.head_gates import closed, closing_order, drawn, open_chance
from manyheads.models.presets import build
from manyheads.models.transformer import Transformer
from tests.small import TRANSFORMERS


def test_gates_by_hand() -> None:
    """With log alpha 0 the noise alone decides: 1.2 / (1 + odds^-1.5) - 0.1, cut to 0 and 1."""
    assert drawn(torch.zeros(3), torch.tensor([0.5, 0.1, 0.9])).tolist() == [0.5, 0, 1]
    assert drawn(torch.zeros(()), torch.tensor(0.4)).item() == pytest.approx(
        1.2 / (1 + 1.5**1.5) - 0.1
    )
    # The chance of a gate that is not 0 is that of noise above the value at which the cut begins.
    uniform = torch.rand(200_000, generator=torch.Generator().manual_seed(0))
    for log_alpha in (-2.0, 0.0, 1.0):
        some = torch.full_like(uniform, log_alpha)
        share = drawn(some, uniform).gt(0).float().mean()
        assert open_chance(some[0]).item() == pytest.approx(share.item(), abs=5e-3)
    edge = math.log(0.1 / 1.1)  # sigmoid(edge) * 1.2 = 0.1
    assert closed(torch.tensor([edge - 0.01, edge + 0.01])).tolist() == [True, False]


def test_heads_that_do_nothing_close_first() -> None:
    """Two heads have no part in the output: the penalty alone acts on their gates."""
    torch.manual_seed(0)
    model = build(replace(TRANSFORMERS["transformer-tiny"], heads=4)).eval()
    assert isinstance(model, Transformer)
    heads, size = model.config.heads, model.config.dim // model.config.heads
    with torch.no_grad():
        output = model.encoder.blocks[0].attention.out
        output.weight[:, size : 3 * size] = 0  # columns of heads 2 and 3
    source, target = torch.randint(4, 9, (8, 5)), torch.randint(4, 9, (8, 4))
    wanted = model(source, target).detach()

    def loss(_: int) -> Tensor:
        return F.mse_loss(model(source, target), wanted)

    sites = [("encoder", 1, "self", head) for head in range(1, heads + 1)]
    order = closing_order(sites, [], loss, steps=150, most=0.02)
    assert {head for *_, head in order[:2]} == {2, 3}
    assert sorted(order) == sites
