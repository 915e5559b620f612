"""The feed-forward network."""

import math

import pytest
import torch
from torch import nn

from manyheads.nn.layers.feedforward import FeedForward, GatedFeedForward, QuickGELU
from tests.small import randomise


def test_feedforward_by_hand() -> None:
    """T10: max(0, x W1 + b1) W2 + b2."""
    network = FeedForward(2, 3, nn.ReLU())
    with torch.no_grad():
        network.expand.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [1, 1]]))
        network.expand.bias.copy_(torch.tensor([0.0, 0, -4]))
        network.contract.weight.copy_(torch.tensor([[1.0, 1, 1], [0, 2, 0]]))
        network.contract.bias.copy_(torch.tensor([0.5, 0]))
    # x = (2, -1): expanded (2, -1, -3), ReLU (2, 0, 0), contracted (2 + .5, 0)
    # x = (3, 4): expanded (3, 4, 3), ReLU the same, contracted (10 + .5, 8)
    out = network(torch.tensor([[2.0, -1], [3, 4]]))
    assert out.tolist() == [[2.5, 0.0], [10.5, 8.0]]


def test_swiglu_by_hand() -> None:
    """Shazeer 2020, equation 6: (swish(x W) * x V) W2 with swish(a) = a sigmoid(a), no biases."""
    network = GatedFeedForward(2, 2, nn.SiLU())
    with torch.no_grad():
        network.gate.weight.copy_(torch.tensor([[1.0, 0], [0, 1]]))
        network.expand.weight.copy_(torch.tensor([[3.0, 0], [0, 5]]))
        network.contract.weight.copy_(torch.tensor([[1.0, 2], [0, 1]]))
    # x = (2, -1): x W = (2, -1), x V = (6, -5)
    left = 2 / (1 + math.exp(-2)) * 6
    right = -1 / (1 + math.exp(1)) * -5
    expected = torch.tensor([left + 2 * right, right])
    torch.testing.assert_close(network(torch.tensor([2.0, -1])), expected)


def test_swiglu_with_biases_by_hand() -> None:
    """DINOv2's: the gate (x W + b), the value (x V + c), and the output bias."""
    network = GatedFeedForward(1, 1, nn.SiLU(), bias=True)
    numbers = {"gate": (2.0, 1.0), "expand": (3.0, -1.0), "contract": (4.0, 0.5)}
    with torch.no_grad():
        for name, values in numbers.items():
            for part, value in zip(("weight", "bias"), values, strict=True):
                network.get_parameter(f"{name}.{part}").fill_(value)
    # x = 1: the gate is 3, swish(3) = 3 / (1 + e^-3); the value is 2
    expected = 4 * 2 * 3 / (1 + math.exp(-3)) + 0.5
    assert network(torch.tensor([1.0])).item() == pytest.approx(expected)


def test_quick_gelu_by_hand() -> None:
    """x / (1 + e^(-1.702 x)): within 0.021 of GELU everywhere, and not equal to it."""
    x = torch.linspace(-6, 6, 241)
    quick = QuickGELU()(x)
    assert QuickGELU()(torch.tensor(1.0)).item() == pytest.approx(1 / (1 + math.exp(-1.702)))
    assert 0.01 < (quick - nn.GELU()(x)).abs().max() < 0.021


def test_swiglu_has_three_matrices() -> None:
    """With two thirds of the width it has as many weights as the network with two matrices."""
    gated, plain = GatedFeedForward(8, 32, nn.SiLU()), FeedForward(8, 48, nn.ReLU())
    weights = [parameter.numel() for parameter in gated.parameters()]
    assert weights == [8 * 32] * 3
    assert sum(weights) == plain.expand.weight.numel() + plain.contract.weight.numel()


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_each_position_is_transformed_by_itself(
    kind: type[FeedForward] | type[GatedFeedForward],
) -> None:
    """T10: the feed-forward network mixes dimensions, never tokens."""
    network = randomise(kind(4, 8, nn.GELU()))
    x = torch.randn(2, 5, 4)
    alone = torch.stack([network(x[:, token]) for token in range(5)], dim=1)
    torch.testing.assert_close(network(x), alone, atol=1e-6, rtol=0)
    changed = x.clone()
    changed[:, 2] += 1.0
    different = (network(changed) != network(x)).any(-1).any(0)
    assert different.tolist() == [False, False, True, False, False]


def test_the_papers_sizes() -> None:
    """T10: 512 -> 2048 -> 512."""
    network = FeedForward(512, 2048, nn.ReLU())
    assert network.expand.weight.shape == (2048, 512)
    assert network.contract.weight.shape == (512, 2048)
