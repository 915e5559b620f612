"""Relative positions: the table of distances, by hand."""

import torch

from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.relative import (
    RelativeAttention,
    RelativeBias,
    RelativeGridPositions,
    distances,
    resize_bias,
    spans,
    stretch_bias,
)


def test_distances_by_hand() -> None:
    """V3: a grid of 1 x 3 has the distances -2 to 2; query 0 is 2 to the left of key 2."""
    assert spans((1, 3)) == (1, 5)
    assert distances((1, 3)).tolist() == [[2, 1, 0], [3, 2, 1], [4, 3, 2]]


def test_equal_distances_share_a_row() -> None:
    """One step down is one step down, wherever it starts; rows count before columns."""
    index = distances((2, 2))  # tokens 0 1 / 2 3; 3 x 3 distances, the middle one is 4
    assert index.diagonal().tolist() == [4, 4, 4, 4]
    assert index[2, 0] == index[3, 1] == 7
    assert index[0, 2] == index[1, 3] == 1
    assert index[1, 0] == index[3, 2] == 5
    assert len(distances((3, 2)).unique()) == 5 * 3


def test_the_bias_is_read_from_the_table() -> None:
    bias = RelativeBias((1, 2), 2)
    bias.table.data = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    expected = torch.tensor([[[2.0, 1.0], [3.0, 2.0]], [[20.0, 10.0], [30.0, 20.0]]])
    assert torch.equal(bias((1, 2)), expected[None])


def test_another_grid_gets_an_interpolated_table() -> None:
    """V9: a constant stays one, the middle of a symmetric table stays the largest."""
    assert torch.allclose(resize_bias(torch.ones(9, 2), (2, 2), (3, 4)), torch.ones(5 * 7, 2))
    peak = torch.zeros(25, 1)
    peak[12] = 1
    assert resize_bias(peak, (3, 3), (4, 5)).argmax() == (7 * 9) // 2
    assert RelativeBias((2, 2), 3)((3, 4)).shape == (1, 3, 12, 12)


def test_a_stretched_table_by_hand() -> None:
    """Distances -2 to 2 for -3 to 3: they are set at 1 and 1 + 1.5, as far apart as timm allows.

    New distance 2 lies 1 beyond the old 1, of 1.5 to the old 2: two thirds of the way. 3 is beyond
    all, and has the bias of the old 2. The grid has one row, whose only distance is 0.
    """
    table = torch.tensor([[10.0], [4.0], [0.0], [1.0], [7.0]])
    found = stretch_bias(table, (1, 3), (1, 4))
    expected = torch.tensor([[10.0], [8.0], [4.0], [0.0], [1.0], [5.0], [7.0]])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    torch.testing.assert_close(
        stretch_bias(table, (3, 1), (4, 2)).unflatten(0, (7, 3)),
        expected[:, None].expand(7, 3, 1),
        rtol=0,
        atol=1e-4,
    )
    assert stretch_bias(table, (1, 3), (1, 3)) is table


def test_a_shift_of_all_tokens_changes_nothing_between_them() -> None:
    """V10: without borders, attention with relative positions is translation equivariant.

    On a line of six, tokens 0 to 2 among themselves and 3 to 5 among themselves answer alike.
    """
    torch.manual_seed(0)
    attention = RelativeAttention(MultiHeadAttention(4, 2), (1, 6))
    bias = attention.bias((1, 6))
    assert torch.equal(bias[..., :3, :3], bias[..., 3:, 3:])


def test_extra_tokens_have_no_distance() -> None:
    """V3: the class token stands nowhere, so nothing is added to its scores, nor to those of it."""
    positions = RelativeGridPositions((1, 2), 1, 4, std=0.0, heads=1)
    positions.distances.table.data = torch.tensor([[1.0], [2.0], [3.0]])
    expected = torch.tensor([[0.0, 0.0, 0.0], [0.0, 2.0, 1.0], [0.0, 3.0, 2.0]])
    assert torch.equal(positions.bias((1, 2)), expected[None, None])
    x = torch.randn(2, 3, 4)
    assert positions(x, (1, 2)) is x  # nothing is added to the tokens
    assert positions.bias((2, 3)).shape == (1, 1, 7, 7)


def test_nothing_but_the_table_is_stored() -> None:
    assert list(RelativeBias((2, 2), 1).state_dict()) == ["table"]
