"""Stochastic depth: what is dropped is whole images, and the expectation stays."""

import pytest
import torch

from manyheads.errors import UsageError
from manyheads.nn.layers.stochastic_depth import StochasticDepth, linear_decay


def test_images_are_dropped_whole() -> None:
    """V15: with p = 0.5 what is kept is doubled, and an image is kept or dropped as a whole."""
    torch.manual_seed(0)
    out = StochasticDepth(0.5).train()(torch.ones(64, 3, 4))
    assert set(out.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(out.amin((1, 2)), out.amax((1, 2)))


def test_the_share_that_is_dropped() -> None:
    torch.manual_seed(0)
    out = StochasticDepth(0.2).train()(torch.ones(20_000, 1))
    assert (out == 0).double().mean().item() == pytest.approx(0.2, abs=0.01)
    assert out.mean().item() == pytest.approx(1.0, abs=0.02)


def test_the_same_seed_drops_the_same_images() -> None:
    part, x = StochasticDepth(0.5).train(), torch.ones(32, 1)
    torch.manual_seed(3)
    first = part(x)
    torch.manual_seed(3)
    assert torch.equal(part(x), first)


def test_evaluation_changes_nothing() -> None:
    x = torch.randn(4, 2)
    assert StochasticDepth(0.5).eval()(x) is x
    assert StochasticDepth(0.0).train()(x) is x


def test_rates_rise_by_equal_steps() -> None:
    assert linear_decay(0.3, 4) == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert linear_decay(0.3, 1) == [0.0]


@pytest.mark.parametrize("p", [-0.1, 1.0])
def test_an_impossible_rate_is_refused(p: float) -> None:
    with pytest.raises(UsageError, match=str(p)):
        StochasticDepth(p)
