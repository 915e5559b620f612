"""Swin, CvT and CoAtNet: what all models in stages promise."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from manyheads.errors import UsageError
from manyheads.lens.trace.attention_reader import attentions
from manyheads.models.coatnet import CoatnetConfig
from manyheads.models.cvt import CvtConfig
from manyheads.models.presets import build
from manyheads.models.swin import Swin, SwinConfig
from manyheads.nn.recording.trace import record
from tests.small import STAGED, Staged, inputs, randomise

every = pytest.mark.parametrize("config", STAGED.values(), ids=STAGED)


@every
def test_shapes(config: Staged) -> None:
    model, (images,) = randomise(build(config)).eval(), inputs(config)
    assert model(images).shape == (2, 5)


@every
def test_any_size(config: Staged) -> None:
    """V9: smaller than a window, odd, not square."""
    model = randomise(build(config)).eval()
    for height, width in ((4, 4), (7, 16), (21, 9)):
        assert model(torch.randn(2, 3, height, width)).isfinite().all()


@every
def test_images_do_not_see_each_other(config: Staged) -> None:
    """In evaluation: batch normalisation then uses what it has learned."""
    model, (images,) = randomise(build(config)).eval(), inputs(config)
    torch.testing.assert_close(model(images)[1:], model(images[1:]), atol=1e-4, rtol=1e-4)


@every
def test_a_fresh_model_finds_all_classes_equally_likely(config: Staged) -> None:
    assert build(config)(*inputs(config)).eq(0).all()


@every
def test_every_parameter_learns(config: Staged) -> None:
    model, (images,) = randomise(build(config)).train(), inputs(config)
    model(images).square().sum().backward()
    idle = ""
    if isinstance(config, CvtConfig):  # only the class token of the last block is read
        idle = "stages.1.blocks.1.attention.query"
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad.abs().sum() > 0) == (not idle or idle not in name), name


@pytest.mark.parametrize("name", ["swin-t", "cvt-13", "coatnet-0"])
def test_one_batch_can_be_learned_by_heart(name: str) -> None:
    torch.manual_seed(0)
    config = STAGED[name]
    model = build(replace(config, drop_path=0.1))
    images, labels = torch.randn(10, 3, config.height, config.width), torch.arange(10) % 5
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(300):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        if loss < 0.1:
            break
        optimizer.step()
    assert loss < 0.1


def test_sites() -> None:
    """Stages count from 1, and windows say whether they are shifted."""
    with record() as trace:
        build(STAGED["swin-t"])(*inputs(STAGED["swin-t"]))
    assert [str(entry.layer_id) for entry in trace] == [
        "stage 1 layer 1 window",
        "stage 1 layer 2 shifted window",
        "stage 2 layer 1 window",
        "stage 2 layer 2 shifted window",
    ]
    with record() as trace:
        build(STAGED["coatnet-0"])(*inputs(STAGED["coatnet-0"]))
    layer_ids = [str(entry.layer_id) for entry in trace]
    assert layer_ids == ["stage 2 layer 1 self", "stage 2 layer 2 self"]


def test_maps_of_windows_cover_the_grid() -> None:
    """Looking: one map a layer over all tokens, as for every other model."""
    config = STAGED["swin-t"]
    model, (images,) = randomise(build(config)).eval(), inputs(config)
    with record() as trace:
        model(images[:1])
    first, *_, last = (found.whole() for found in attentions(trace))
    assert first.shape == (2, 6 * 7, 6 * 7)  # 11 x 14 pixels in patches of 2 x 2
    assert last.shape == (4, 3 * 4, 3 * 4)
    torch.testing.assert_close(first.sum(-1), torch.ones(2, 42))


def test_the_papers_grids() -> None:
    assert SwinConfig().grids == [(56, 56), (28, 28), (14, 14), (7, 7)]
    assert SwinConfig().windows == [(7, 7)] * 4
    assert SwinConfig(height=128, width=256).windows == [(7, 7), (7, 7), (7, 7), (4, 7)]
    assert CoatnetConfig().grids == [(56, 56), (28, 28), (14, 14), (7, 7)]


def test_a_shifted_window_carries_what_a_plain_one_cannot() -> None:
    """V16: a pixel reaches its own window of 4 x 4; with one shifted by 2 behind it, 6 x 6."""
    config = SwinConfig(
        height=8, width=8, patch=1, dim=8, layers=(1,), heads=(2,), window=(4, 4), classes=5
    )
    for layers, reached in (((1,), 16), ((2,), 36)):
        model = randomise(Swin(replace(config, layers=layers))).eval()
        images = torch.randn(1, 3, 8, 8)
        changed = images.clone()
        changed[0, :, 3, 3] += 1  # the corner of the first window
        difference = (model.features(changed) - model.features(images)).abs().amax(-1)[0]
        assert int((difference > 1e-6).sum()) == reached


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SwinConfig(layers=(2, 2)), "layers has 2 numbers, heads 4"),
        (lambda: SwinConfig(window=(0, 7)), r"\(0, 7\)"),
        (
            lambda: CvtConfig(dims=(8, 16)),
            "dims has 2 numbers, layers 3, heads 3, kernels 3, strides 3, paddings 3",
        ),
        (lambda: CoatnetConfig(dims=(8, 16)), "2 stages, layers 4"),
        (lambda: CoatnetConfig(dims=(96, 192, 384, 700)), "700 wide, .* 32 "),
    ],
)
def test_stages_that_do_not_fit_are_refused(make: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()  # type: ignore[operator]
