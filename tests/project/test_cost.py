"""Counting operations: by hand for each kind of product."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from manyheads.models.presets import build
from manyheads.project.cost import OperationCount
from tests.small import ALL, inputs


def test_products_by_hand() -> None:
    """Two operations a multiplication and its sum."""
    with OperationCount() as count:
        F.linear(torch.ones(3, 4), torch.ones(5, 4))  # 3 x 5 sums of 4
    assert count.total == 2 * 3 * 5 * 4
    with OperationCount() as count:
        nn.Conv2d(2, 3, 3, padding=1)(torch.ones(1, 2, 4, 4))  # 3 x 4 x 4 sums of 2 x 3 x 3
    assert count.total == 2 * 48 * 18
    with OperationCount() as count:
        torch.ones(2, 3, 4) @ torch.ones(4, 5)
        torch.ones(3, 4).matmul(torch.ones(4, 1))
    assert count.total == 2 * (30 * 4 + 3 * 4)
    with OperationCount() as count:  # 2 heads, 3 queries, 5 keys, 4 numbers each, twice
        keys = torch.ones(1, 2, 5, 4)
        F.scaled_dot_product_attention(torch.ones(1, 2, 3, 4), keys, keys)
    assert count.total == 2 * 2 * 3 * 5 * (4 + 4)
    with OperationCount() as count:  # 6 tokens, each of 3 gates reads 4 + 7 numbers and biases
        nn.GRU(4, 7, batch_first=True)(torch.ones(2, 3, 4))
    assert count.total == 2 * 6 * 3 * 7 * (4 + 7 + 2)


@pytest.mark.parametrize(
    "name", ["vit-b", "resnet-18", "transformer-base", "seq2seq-lstm-attention"]
)
def test_twice_the_examples_cost_twice_as_much(name: str) -> None:
    model = build(ALL[name])
    totals = []
    for rows in (1, 2):
        with OperationCount() as count:
            model(*(torch.cat((x[:1],) * rows) for x in inputs(ALL[name])))
        totals.append(count.total)
    assert totals[1] == 2 * totals[0] > 0
