"""Bytes and seconds, worked out by hand."""

import torch

from manyheads.labs.timing import best_of, saved_bytes


def test_saved_bytes() -> None:
    """x is kept once, though it is used twice: 10 numbers, and their square root."""
    x = torch.rand(10, requires_grad=True)
    assert saved_bytes(lambda: x * x) == 40
    assert saved_bytes(lambda: x.sqrt() + x * x) == 80


def test_weights_are_not_what_a_forward_pass_costs() -> None:
    """5 rows of 3 numbers are kept for the weights' gradient; the weights are there anyway."""
    layer = torch.nn.Linear(3, 7)
    x = torch.rand(5, 3, requires_grad=True)
    assert saved_bytes(lambda: layer(x)) == 4 * (5 * 3 + 7 * 3)
    assert saved_bytes(lambda: layer(x), layer.parameters()) == 4 * 5 * 3


def test_best_of() -> None:
    """In turns, one round more to warm up."""
    order: list[str] = []
    found = best_of(2, {"a": lambda: order.append("a"), "b": lambda: order.append("b")})
    assert order == ["a", "b"] * 3
    assert set(found) == {"a", "b"}
