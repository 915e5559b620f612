"""What is measured inside models, worked out by hand."""

import torch
from torch import nn

from manyheads.lab.measures import (
    attention_distance,
    cka,
    layers_needed,
    likeness,
    outputs,
    patch_distances,
    pooled,
    probe,
    receptive_field,
    seen,
)
from manyheads.lab.timing import best_of, saved_bytes


def test_receptive_field() -> None:
    """E4: 3 + 2 (n - 1); 15 layers see 31 pixels, so 32 need 16."""
    assert [receptive_field(n) for n in (1, 2, 14, 15, 16)] == [3, 5, 29, 31, 33]
    assert layers_needed(32) == 16
    assert layers_needed(31) == 15
    assert receptive_field(1, kernel=7) == 7


def test_what_is_seen_is_counted() -> None:
    """Two convolutions of 3, the second with stride 2: 5 pixels; a 1 x 1 sees one."""
    first, second = nn.Conv2d(1, 1, 3, padding=1), nn.Conv2d(1, 1, 3, padding=1, stride=2)
    for part in (first, second):
        nn.init.ones_(part.weight)
    pictures = torch.ones(1, 1, 5, 21)
    assert seen(nn.Sequential(first, second), pictures, 5) == 5
    assert seen(nn.Conv2d(1, 1, 1), pictures, 5) == 1


def test_patch_distances() -> None:
    """Two rows of two patches, 4 pixels each: 4 to a neighbour, 4 root 2 across."""
    table = patch_distances((2, 2), 4)
    assert table[0].tolist() == [0, 4, 4, 32**0.5]


def test_attention_distance() -> None:
    """A head that looks at itself, one that looks evenly; the class token's column is left out."""
    own = torch.eye(4)
    even = torch.full((4, 4), 0.25)
    weights = torch.zeros(1, 2, 5, 5)
    weights[0, 0, 1:, 1:], weights[0, 1, 1:, 1:] = 0.5 * own, 0.5 * even
    weights[..., 0] = 0.5  # half of all attention goes to the class token
    found = attention_distance(weights, (2, 2), 4)
    torch.testing.assert_close(found, torch.tensor([0.0, (8 + 32**0.5) / 4], dtype=torch.float64))


def test_cka() -> None:
    """1 for what is turned, moved and scaled; 0 for what is orthogonal; by hand in between."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(20, 6, generator=random, dtype=torch.float64)
    turn, _ = torch.linalg.qr(torch.randn(6, 6, generator=random, dtype=torch.float64))
    assert cka(x, 3 * x @ turn + 7) == 1.0 or abs(cka(x, 3 * x @ turn + 7) - 1) < 1e-9
    a = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]])
    b = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]])
    assert abs(cka(a, b)) < 1e-12
    # a alone against a and b together: ||a^T [a b]||^2 / (||a^T a|| ||[a b]^T [a b]||) = 1 / root 2
    assert abs(cka(a, torch.cat((a, b), dim=1)) - 0.5**0.5) < 1e-9
    table = likeness([a, b])
    assert abs(table[0][0] - 1) < 1e-12
    assert table[0][1] == table[1][0]


def test_probe() -> None:
    """What a line can divide it divides; what is noise it guesses."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(400, 5, generator=random)
    labels = (x[:, 2] > 0).long()
    assert probe(x[:200], labels[:200], x[200:], labels[200:]) > 90
    noise = torch.randint(0, 2, (400,), generator=random)
    assert 35 < probe(x[:200], noise[:200], x[200:], noise[200:]) < 65


def test_outputs_and_pooling() -> None:
    """In the order of the parts, and hooks are gone afterwards."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.Linear(3, 2))
    pictures = torch.randn(5, 4)
    second, first = outputs(model, [model[2], model[1]], pictures)
    torch.testing.assert_close(first, model[1](pictures))
    torch.testing.assert_close(second, model(pictures))
    assert not model[1]._forward_hooks
    tokens = torch.arange(6.0).view(1, 3, 2)
    assert pooled(tokens).tolist() == [[2, 3]]
    assert pooled(torch.ones(2, 3, 4, 4)).shape == (2, 3)


def test_saved_bytes() -> None:
    """x is kept once, though it is used twice: 10 numbers, and their square root."""
    x = torch.rand(10, requires_grad=True)
    assert saved_bytes(lambda: x * x) == 40
    assert saved_bytes(lambda: x.sqrt() + x * x) == 80


def test_best_of() -> None:
    """In turns, one round more to warm up."""
    order: list[str] = []
    found = best_of(2, {"a": lambda: order.append("a"), "b": lambda: order.append("b")})
    assert order == ["a", "b"] * 3
    assert set(found) == {"a", "b"}
