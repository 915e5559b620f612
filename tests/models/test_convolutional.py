"""MLP, VGG, ResNet, BiT and the hybrid: what every preset promises, at test size."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.airbench import AirbenchConfig, patch_filters
from manyheads.models.coatnet import CoatnetConfig
from manyheads.models.hybrid import HybridConfig
from manyheads.models.mlp import MlpConfig
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import PRESETS, build
from manyheads.models.resnet import ResNetConfig
from manyheads.models.resnet_v2 import ResNetV2Config
from manyheads.models.vgg import VggConfig
from tests.small import CONVOLUTIONAL, HYBRIDS, inputs, randomise

MLP = MlpConfig(height=4, width=6, hidden_sizes=(8, 7), classes=5)
EVERY: dict[str, ModelConfig] = {**CONVOLUTIONAL, **HYBRIDS, "mlp": MLP}
# One of each kind of parts: the presets of one kind differ in numbers only.
KINDS = (
    *("vgg-16", "vgg-16-bn", "resnet-18", "resnet-50", "resnet-20", "bit-50x1"),
    *("hybrid-r26-s", "airbench94"),
)
every = pytest.mark.parametrize("config", EVERY.values(), ids=EVERY)


def make(config: ModelConfig) -> Any:
    return randomise(build(config)).eval()


def close(actual: Tensor, expected: Tensor, atol: float = 1e-4, rtol: float = 1e-4) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=rtol)


@every
def test_shapes(config: ModelConfig) -> None:
    """V13, V14: images in, logits over classes out; a fresh model finds all equally likely."""
    images = inputs(config)[0]
    assert make(config)(images).shape == (2, 5)
    assert build(config).eval()(images).eq(0).all()


@every
def test_every_parameter_learns(config: ModelConfig) -> None:
    """No part of the model is left out of the computation."""
    model, images = make(config).train(), inputs(config)[0]
    model(images).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@every
def test_images_do_not_see_each_other(config: ModelConfig) -> None:
    """A batch is a batch, in use; while learning, batch norm alone lets them."""
    model, images = make(config), inputs(config)[0]
    close(model(images)[1:], model(images[1:]))
    seen = isinstance(config, ResNetConfig | AirbenchConfig) or (
        isinstance(config, VggConfig) and config.norm == "batch"
    )
    if not isinstance(config, VggConfig | MlpConfig) or seen:  # dropout draws for the whole batch
        model.train()
        alone = model(torch.stack((images[1], images[1])))[0]
        assert (model(images)[1] - alone).abs().max().item() > 1e-3 or not seen


@pytest.mark.parametrize("name", KINDS)
def test_another_image_size_runs(name: str) -> None:
    """Convolutions have no size; the hybrid interpolates its positions."""
    config = EVERY[name]
    model = make(config)
    for height, width in ((32, 64), (64, 32)):
        logits = model(torch.randn(2, 3, height, width))
        assert logits.shape == (2, 5)
        assert logits.isfinite().all()


@pytest.mark.parametrize("name", KINDS)
def test_any_number_of_channels(name: str) -> None:
    config: Any = EVERY[name]
    config = replace(config, channels=4)
    assert make(config)(torch.randn(1, 4, config.height, config.width)).shape == (1, 5)


@pytest.mark.parametrize("name", ["vgg-16-bn", "resnet-18", "bit-50x1"])
def test_features_move_with_the_image(name: str) -> None:
    """V10: a feature map moves with its image, one column a stride, away from the border.

    Group norm takes its statistics over the whole map. What has been drawn stays far enough from
    the border that zero padding and picture never meet in one receptive field: moving it permutes
    the map's values, statistics stay, and the property is exact. In fp64, so that rounding is far
    below the tolerance.
    """
    model = make(EVERY[name]).double()
    stride = 4 if name == "vgg-16-bn" else 8
    images = torch.zeros(1, 3, 16, 192, dtype=torch.float64)
    images[..., 80:112] = torch.randn(1, 3, 16, 32, dtype=torch.float64)
    features = model.features(images)

    def moved(by: int) -> Tensor:
        return model.features(torch.roll(images, by, dims=3))

    away = slice(48 // stride, -48 // stride)  # from the border
    before = features[..., :-1][..., away]
    assert before.std(dim=3).mean() > 0.1  # there is something to be moved
    close(moved(stride)[..., 1:][..., away], before, atol=1e-8, rtol=1e-8)
    # The tolerance tells: half a stride is no column.
    assert (moved(stride // 2)[..., 1:][..., away] - before).abs().max() > 0.1


@pytest.mark.parametrize("name", ["resnet-18", "resnet-50", "bit-50x1", "vgg-16-bn", "airbench94"])
def test_one_batch_can_be_learned_by_heart(name: str) -> None:
    """The cheapest test of a training step: overfit 8 random images."""
    torch.manual_seed(0)
    config: Any = EVERY[name]
    config = replace(config, dropout=0.0) if isinstance(config, VggConfig) else config
    model = build(config)
    images, labels = torch.randn(8, 3, config.height, config.width), torch.arange(8) % 5
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(120):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        if loss < 0.1:
            break
        optimizer.step()
    assert loss < 0.1


# --- What the papers say ------------------------------------------------------------------------


def test_the_depths_in_the_names() -> None:
    """A ResNet's number counts its convolutions and its head, shortcuts left out."""
    for name, config in PRESETS.items():
        if isinstance(config, ResNetConfig):
            each = 2 if config.block == "basic" else 3
            assert int(name.rpartition("-")[2]) == each * sum(config.depths) + 2, name


def test_vgg_has_sixteen_layers_with_weights() -> None:
    config = PRESETS["vgg-16"]
    assert isinstance(config, VggConfig)
    assert sum(config.depths) + 3 == 16


def test_the_papers_feature_maps() -> None:
    """224 pixels become 7 x 7, those of 32 in a thin ResNet 8 x 8; R50+ViT-B/16 has 14 x 14."""
    with torch.device("meta"):
        for name, shape in {
            "resnet-50": (2048, 7, 7),
            "bit-50x1": (2048, 7, 7),
            "vgg-16": (512, 7, 7),
            "resnet-20": (64, 8, 8),
            "airbench94": (256, 3, 3),
        }.items():
            config: Any = PRESETS[name]
            model: Any = build(config)
            images = torch.empty(1, 3, config.height, config.width)
            assert model.eval().features(images).shape[1:] == shape, name
    hybrid = PRESETS["hybrid-r50-b"]
    assert isinstance(hybrid, HybridConfig)
    assert hybrid.grid == (14, 14)
    assert hybrid.stride == 16


def test_bit_has_no_statistics_of_batches() -> None:
    """Kolesnikov et al. 2020: learning and use compute the same."""
    model, images = make(CONVOLUTIONAL["bit-50x1"]), inputs(CONVOLUTIONAL["bit-50x1"])[0]
    assert not list(model.buffers())
    close(model.train()(images), model.eval()(images))


def test_a_hybrids_tokens_are_a_feature_maps() -> None:
    """A convolution with the patches' weights over the ResNet's map gives the same tokens."""
    config = HYBRIDS["hybrid-r26-s"]
    model, images = make(config), inputs(config)[0]
    tokens = model.patches
    x = tokens.stages(tokens.pool(F.relu(tokens.stem(images))))
    assert x.shape[2:] == (2, 1)
    weight = tokens.patches.project.weight
    expected = F.conv2d(x, weight[:, :, None, None], tokens.patches.project.bias)
    close(tokens(images), expected.flatten(2).transpose(1, 2))


def test_vgg_dense_is_the_mean_over_windows() -> None:
    """Section 3.2: on a larger map the classifier slides; on 7 x 7 both heads are one."""
    config = replace(VggConfig(), depths=(1,), widths=(4,), hidden_size=8, classes=5, height=14)
    config = replace(config, width=14)
    pooled, dense = make(config), make(replace(config, head="dense"))
    images = torch.randn(2, 3, 14, 14)
    close(dense(images), pooled(images))
    wide = torch.randn(2, 3, 14, 16)  # two windows, one pixel of the map apart
    halves = pooled(wide[..., :14]), pooled(wide[..., 2:])
    assert (dense(wide) - pooled(wide)).abs().max() > 1e-3
    # Not the mean of two crops: the convolution sees past their borders.
    assert (dense(wide) - sum(halves) / 2).abs().max() < (halves[0] - halves[1]).abs().max()


def test_patches_of_two_by_two_by_hand() -> None:
    """Of one channel: mean, slope down, slope across, and both; then their negatives."""
    expected = torch.tensor([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]]) / 2
    filters = patch_filters(1).flatten(1)
    found = {tuple(row) for row in filters.round(decimals=3).tolist()}
    assert found == {tuple(row) for row in torch.cat((expected, -expected)).tolist()}
    colours = patch_filters(3)[:12].flatten(1)  # they are orthonormal
    close(colours @ colours.T, torch.eye(12))


def test_a_fresh_airbench_passes_its_channels_on() -> None:
    """Jordan 2024, section 3.3: the first filters of each convolution copy their channel."""
    model: Any = build(replace(CONVOLUTIONAL["airbench94"], widths=(30, 40)))
    for group in model.groups:
        for convolution in (group.first, group.second):
            x = torch.randn(1, convolution.in_channels, 4, 4)
            close(convolution(x)[:, : x.shape[1]], x)


def test_airbenchs_first_filters_are_stored_and_do_not_learn() -> None:
    """Section 3.2: they stay what they were."""
    model = build(CONVOLUTIONAL["airbench94"])
    assert "filters.weight" in model.state_dict()
    assert "filters.weight" not in dict(model.named_parameters())


def test_a_perceptron_by_hand() -> None:
    model, images = make(MLP), inputs(MLP)[0]
    first, second = (layer[0] for layer in model.layers)
    x = F.relu(second(F.relu(first(images.flatten(1)))))
    close(model(images), model.head(x))


# --- Mistakes -----------------------------------------------------------------------------------


def test_a_perceptron_has_one_size() -> None:
    with pytest.raises(UsageError, match=r"3 x 4 x 8 .* weights for 3 x 4 x 6"):
        make(MLP)(torch.zeros(1, 3, 4, 8))


def test_airbench_cannot_halve_nothing() -> None:
    with pytest.raises(UsageError, match=r"8 x 64 pixels .* halved 3 times: .* at least 9 x 9"):
        AirbenchConfig(height=8, width=64)
    with pytest.raises(UsageError, match=r"widths is \(\)"):
        AirbenchConfig(widths=())


def test_vgg_cannot_halve_nothing() -> None:
    with pytest.raises(UsageError, match=r"16 x 64 pixels cannot be halved 5 times.*32 x 32"):
        VggConfig(height=16, width=64)
    with pytest.raises(UsageError, match=r"2 x 8 pixels cannot be halved 2 times"):
        make(CONVOLUTIONAL["vgg-16"])(torch.zeros(1, 3, 2, 8))


@pytest.mark.parametrize(
    ("build_config", "message"),
    [
        (lambda: ResNetConfig(depths=(1, 1)), "depths has 2 numbers, widths 4"),
        (lambda: VggConfig(depths=(1, 1)), "depths has 2 numbers, widths 5"),
        (lambda: ResNetV2Config(norm_groups=48), "64 channels .* 48 groups"),
        (lambda: HybridConfig(patch=3), r"map of 14 x 14 .* 3 x 3: .* multiples of 48"),
        (lambda: HybridConfig(depths=(1, 0, 1)), r"depths is \(1, 0, 1\), .* at least 1 block"),
        (lambda: HybridConfig(depths=(-1, 1)), r"depths is \(-1, 1\), .* at least 1 block"),
        (
            lambda: HybridConfig(attention="linear", attention_dropout=0.1),
            r"attention_dropout is 0\.1, but linear",
        ),
        (
            lambda: HybridConfig(attention="linear", positions="relative"),
            "linear attention forms none",
        ),
        (lambda: CoatnetConfig(layers=(2, 3, 0, 2)), r"layers is \(2, 3, 0, 2\), .* at least 1"),
    ],
)
def test_configs_that_contradict_themselves(build_config: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build_config()


def test_no_module_is_shared() -> None:
    """The factories make a new module each time."""
    for config in EVERY.values():
        modules = [m for m in build(config).modules() if not isinstance(m, nn.Identity)]
        assert len(modules) == len({id(module) for module in modules})
