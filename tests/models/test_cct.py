"""The Compact Convolutional Transformer: shapes, sizes, learning."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from manyheads.errors import UsageError
from manyheads.models.cct import Cct, CctConfig
from tests.small import CCTS, inputs, randomise

presets = pytest.mark.parametrize("config", CCTS.values(), ids=CCTS)


@presets
def test_shapes(config: CctConfig) -> None:
    """V15: 5 x 7 pixels are 3 x 4 tokens behind one convolution, 2 x 2 behind two."""
    model, (images,) = randomise(Cct(config)).eval(), inputs(config)
    tokens = {1: 12, 2: 4}[config.convolutions]
    assert model.features(images).shape == (2, tokens + model.pool.extra, 8)
    assert model(images).shape == (2, 5)


def test_the_papers_shapes() -> None:
    """32 x 32 pixels: 256 tokens in CCT-7/3x1, 64 in CCT-7/3x2."""
    assert CctConfig().grid == (16, 16)
    assert CctConfig(convolutions=2).grid == (8, 8)


@presets
def test_any_size(config: CctConfig) -> None:
    """V9: one pixel, odd sizes, not square: positions are interpolated."""
    model = randomise(Cct(config)).eval()
    for height, width in ((1, 1), (6, 3), (11, 8)):
        logits = model(torch.randn(2, 3, height, width))
        assert logits.isfinite().all()
        assert logits.shape == (2, 5)


def test_a_fresh_model_finds_all_classes_equally_likely() -> None:
    config = CCTS["cct-2/3x2"]
    assert Cct(config)(*inputs(config)).eq(0).all()


def test_images_do_not_see_each_other() -> None:
    config = CCTS["cct-7/3x1"]
    model, (images,) = randomise(Cct(config)).eval(), inputs(config)
    torch.testing.assert_close(model(images)[1:], model(images[1:]))


def test_an_even_kernel_is_refused() -> None:
    with pytest.raises(UsageError, match="4 x 4"):
        CctConfig(kernel=4)
    with pytest.raises(UsageError, match="0 convolutions"):
        CctConfig(convolutions=0)


@presets
def test_every_parameter_learns(config: CctConfig) -> None:
    model, (images,) = randomise(Cct(config)).train(), inputs(config)
    model(images).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_one_batch_can_be_learned_by_heart() -> None:
    """With stochastic depth, too."""
    torch.manual_seed(0)
    config = replace(CCTS["cct-2/3x2"], dim=32, heads=4, ffn_dim=64, drop_path=0.1)
    model = Cct(config)
    images, labels = torch.randn(10, 3, 8, 8), torch.arange(10) % 5
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(200):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        if loss < 0.05:
            break
        optimizer.step()
    assert loss < 0.05
