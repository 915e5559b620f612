"""Principal components and neighbours, worked out by hand."""

import pytest
import torch

from manyheads.lens.measures.principal_components import (
    POINTS,
    neighbour_figure,
    plane_figures,
    principal,
)
from manyheads.lens.panels import Scatter, Table
from manyheads.lens.trace.states import LayerState, Lookup


def test_principal_components_by_hand() -> None:
    """A cross: 4 apart along (0, 1, 0), 2 apart along (1, 0, 0); 16 : 4 of the variance."""
    x = torch.tensor([[0.0, 2, 5], [0, -2, 5], [1, 0, 5], [-1, 0, 5]])
    points, shares = principal(x)
    torch.testing.assert_close(
        points, torch.tensor([[2.0, 0], [-2, 0], [0, 1], [0, -1]], dtype=torch.float64)
    )
    torch.testing.assert_close(shares, torch.tensor([0.8, 0.2], dtype=torch.float64))


def test_turned_and_moved_it_is_the_same_plane() -> None:
    """Distances between points do not change, and shares do not."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(6, 2, generator=random, dtype=torch.float64)
    turn, _ = torch.linalg.qr(torch.randn(5, 5, generator=random, dtype=torch.float64))
    points, shares = principal(x @ turn[:2] + 3)
    torch.testing.assert_close(torch.cdist(points, points), torch.cdist(x, x))
    assert shares.sum() == pytest.approx(1)


def test_few_tokens_and_no_variance() -> None:
    """One dimension, or vectors that are all equal: no division by 0."""
    points, shares = principal(torch.tensor([[1.0], [2.0], [4.0]]))
    assert points[:, 1].tolist() == [0, 0, 0]
    assert shares.tolist() == [1, 0]
    assert principal(torch.ones(3, 4))[1].tolist() == [0, 0]


def test_the_first_and_the_last_layer_of_a_stack() -> None:
    """With names; layers over other tokens are left out, and of many points some."""
    layers = [
        LayerState("encoder", "embedded", 0, torch.randn(1, 3, 4)),
        LayerState("encoder", "encoder layer 1", 1, torch.randn(1, 3, 4)),
        LayerState("encoder", "encoder layer 2", 2, torch.randn(1, 3, 4)),
        LayerState("decoder", "decoder layer 1", 1, torch.randn(1, 1, 4)),
    ]
    first, last = plane_figures(layers, {"encoder": ["a", "b", "c"], "decoder": ["x", "y", "z"]})
    assert isinstance(first.panel, Scatter)
    assert first.panel.title == "Token vectors before the first layer (encoder)"
    assert last.panel.title == "Token vectors after encoder layer 2 (encoder)"
    assert first.panel.names == ["a", "b", "c"]
    many = [str(n) for n in range(3 * POINTS)]
    (long,) = plane_figures(
        [LayerState("encoder", "encoder layer 1", 1, torch.randn(1, len(many), 4))],
        {"encoder": many},
    )
    assert isinstance(long.panel, Scatter)
    assert len(long.panel.points) == len(long.panel.names) == POINTS
    assert "one in 3 tokens" in long.legend


def test_neighbours_by_hand() -> None:
    """T7: of a at 0 degrees, b at 60 and c at 90: b is nearest to both, a token never to itself."""
    table = torch.tensor([[2.0, 0], [0.5, 0.75**0.5], [0, 3]])
    figure = neighbour_figure(
        Lookup(table, torch.tensor([[2, 0, 2]])), lambda token: "abc"[token], "source"
    )
    assert isinstance(figure.panel, Table)
    assert figure.panel.rows == [["c", "2", "b 0.87, a 0.00"], ["a", "0", "b 0.50, c 0.00"]]
