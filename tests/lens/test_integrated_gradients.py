"""Integrated gradients by hand, and its axioms."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from manyheads.lens.attribution.integrated_gradients import integrated_gradients, until_complete

X, BASELINE = torch.tensor([2.0, 3.0]), torch.tensor([0.0, 1.0])


def test_a_product_by_hand() -> None:
    """f = x y from (0, 1) to (2, 3): along the line x = 2a, y = 1 + 2a.

    df/dx = y integrates to 2, times 2; df/dy = x to 1, times 2; together f(x) - f(b) = 6.
    """
    found = integrated_gradients(lambda p: p.prod(dim=1)[:, None], X, BASELINE, steps=2)
    torch.testing.assert_close(found.parts, torch.tensor([[4.0, 2.0]]))
    torch.testing.assert_close(found.difference, torch.tensor([6.0]))
    assert found.complete


def test_several_scores_at_once() -> None:
    """Each score has its own parts, whatever goes through together."""

    def scores(points: Tensor) -> Tensor:
        return torch.stack((points.sum(dim=1), points[:, 0] ** 3), dim=1)

    for passes in (1, 3, 8):
        found = integrated_gradients(scores, X, BASELINE, steps=4, passes=passes)
        torch.testing.assert_close(found.parts, torch.tensor([[2.0, 2.0], [8.0, 0.0]]))


@given(st.lists(st.floats(-2, 2), min_size=4, max_size=4), st.integers(0, 3))
def test_axioms(values: list[float], idle: int) -> None:
    """Completeness (proposition 1), and nothing for what the score does not depend on."""
    x = torch.tensor(values, dtype=torch.float64)
    weights = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    weights[idle] = 0

    def scores(points: Tensor) -> Tensor:
        return ((points * weights).sum(dim=1).tanh() + points[:, idle - 1] ** 2)[:, None]

    found = integrated_gradients(scores, x, torch.zeros_like(x))
    assert found.missing.abs().max() < 1e-4
    assert found.parts[0, idle] == 0


def test_steps_are_doubled_until_the_parts_add_up() -> None:
    """A score that changes all at once needs many; what is still missing is told."""

    def sharp(points: Tensor) -> Tensor:
        return (200 * (points[:, :1] - 0.37)).sigmoid()

    x, baseline = torch.tensor([1.0]), torch.tensor([0.0])
    few = integrated_gradients(sharp, x, baseline, steps=32)
    assert not few.complete
    assert few.missing.abs() > 0.05
    more = until_complete(sharp, x, baseline)
    assert (more.complete, more.steps) == (True, 128)
    assert until_complete(sharp, x, baseline, most=100).steps == 64
