"""Initial weights: how wide each part draws them, measured on parts large enough to measure."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

from manyheads.nn.attention.relative import RelativeBias
from manyheads.nn.blocks.pool import AttentionPool, ClassToken, SequencePool, TwoTokens
from manyheads.nn.layers import initial_weights as initial
from manyheads.nn.layers.linear import Linear
from manyheads.nn.layers.positions import GridPositions, LearnedPositions
from manyheads.nn.vision.convolution import initialise
from manyheads.nn.vision.stem import ConvStem


def parts() -> nn.ModuleDict:
    """A layer of each kind, of which some are not asked for."""
    torch.manual_seed(0)
    made = nn.ModuleDict(
        {
            "linear": Linear(200, 100),
            "unbiased": Linear(100, 200, bias=False),
            "padded": nn.Embedding(1000, 25, padding_idx=3),
            "plain": nn.Embedding(1000, 25),
            "convolution": nn.Conv2d(40, 30, 5),
        }
    )
    for parameter in made.parameters():
        nn.init.constant_(parameter, 7.0)
    return made


def untouched(made: nn.ModuleDict, *names: str) -> bool:
    return all(p.eq(7.0).all() for name in names for p in made[name].parameters())


def test_xavier_by_hand() -> None:
    """Uniform up to sqrt(6 / (inputs + outputs)), both ways round; biases are 0."""
    made = parts()
    initial.xavier(made)
    for name in ("linear", "unbiased"):
        weight = made.get_parameter(f"{name}.weight")
        assert 0.99 * math.sqrt(6 / 300) < weight.abs().max() <= math.sqrt(6 / 300)
        assert weight.std().item() == pytest.approx(math.sqrt(2 / 300), rel=0.02)
    assert made.get_parameter("linear.bias").eq(0).all()
    assert untouched(made, "padded", "plain", "convolution")


def test_truncated_by_hand() -> None:
    """A standard deviation of .02; biases are 0."""
    made = parts()
    initial.truncated(made)
    for name in ("linear", "unbiased"):
        assert made.get_parameter(f"{name}.weight").std().item() == pytest.approx(0.02, rel=0.02)
    assert made.get_parameter("linear.bias").eq(0).all()
    assert untouched(made, "padded", "plain", "convolution")


def test_embeddings_by_hand() -> None:
    """A variance of 1 / 25; padding is 0."""
    made = parts()
    initial.embeddings(made)
    for name in ("padded", "plain"):
        weight = made.get_parameter(f"{name}.weight")[torch.arange(1000) != 3]
        assert weight.std().item() == pytest.approx(0.2, rel=0.02)
        assert made.get_parameter(f"{name}.weight")[3].eq(0).all() == (name == "padded")
    assert untouched(made, "linear", "unbiased", "convolution")


def test_filters_by_hand() -> None:
    """He et al. 2015 by outputs: a variance of 2 / (30 filters of 5 x 5 values); biases are 0."""
    made = parts()
    initialise(made)
    assert made.get_parameter("convolution.weight").std().item() == pytest.approx(
        math.sqrt(2 / (30 * 25)), rel=0.02
    )
    assert made.get_parameter("convolution.bias").eq(0).all()
    assert untouched(made, "linear", "unbiased", "padded", "plain")


@pytest.mark.parametrize(
    ("make", "name", "std"),
    [
        (lambda: LearnedPositions(100, 50), "table", 0.02),
        (lambda: GridPositions((10, 10), 1, 50, std=0.3), "table", 0.3),
        (lambda: RelativeBias((20, 20), 8), "table", 0.02),
        (lambda: ClassToken(5000), "token", 0.02),
        (lambda: TwoTokens(5000), "token", 0.02),
        (lambda: SequencePool(5000), "query", 0.02),
        (lambda: AttentionPool(1000), "query", 0.02),
        # By inputs: 2 / (10 channels of 7 x 7 values).
        (lambda: ConvStem(10, [20], kernel=7), "layers.0.weight", math.sqrt(2 / 490)),
    ],
)
def test_learned_tables_and_tokens(make: Callable[[], nn.Module], name: str, std: float) -> None:
    """.02 as in the papers' code, unless a recipe says otherwise."""
    torch.manual_seed(0)
    assert make().get_parameter(name).std().item() == pytest.approx(std, rel=0.05)


def test_the_feed_forward_part_of_a_pool_is_four_times_as_wide() -> None:
    """As in every block of a ViT."""
    assert AttentionPool(6, 2).feedforward.expand.weight.shape == (24, 6)
