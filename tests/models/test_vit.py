"""The Vision Transformer: what every preset promises, at test size."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.image_encoder import Pool, Positions
from manyheads.models.vit import Patches, Vit, VitConfig
from manyheads.nn.blocks.block import EncoderBlock
from manyheads.nn.layers.feedforward import FeedForward
from manyheads.nn.layers.positions import resize_grid
from manyheads.nn.layers.stochastic_depth import StochasticDepth
from manyheads.nn.recording.trace import record
from manyheads.nn.vision.patch import patchify
from tests import torch_reference
from tests.small import VITS, inputs, randomise

WB = ("weight", "bias")
presets = pytest.mark.parametrize("config", VITS.values(), ids=VITS)
BASE = VITS["vit-b"]  # 4 x 6 pixels in patches of 2 x 2: 2 rows and 3 columns

OWN = {"class": 1, "patch-mean": 1, "class-and-mean": 1, "distilled": 2}  # extra tokens of a pool


def make(config: VitConfig) -> Vit:
    return randomise(Vit(config)).eval()


def close(actual: Tensor, expected: Tensor, atol: float = 1e-5) -> None:
    torch.testing.assert_close(actual, expected, atol=atol, rtol=0)


def permute_patches(images: Tensor, order: list[int]) -> Tensor:
    """Cut 4 x 6 images into 2 x 2 patches and lay them in another order."""
    patches = patchify(images, 2)[:, order]
    grid = patches.unflatten(1, (2, 3)).unflatten(-1, (-1, 2, 2))  # batch row column channel y x
    return grid.permute(0, 3, 1, 4, 2, 5).flatten(4).flatten(2, 3)


def test_the_helper_permutes_patches() -> None:
    images = torch.randn(2, 3, 4, 6)
    assert torch.equal(permute_patches(images, [0, 1, 2, 3, 4, 5]), images)
    swapped = permute_patches(images, [1, 0, 2, 3, 4, 5])
    assert torch.equal(swapped[:, :, :2, :2], images[:, :, :2, 2:4])


# --- Shapes -------------------------------------------------------------------------------------


@presets
def test_shapes(config: VitConfig) -> None:
    """V1, V2, V6: N = HW / P^2 tokens, one more with a class token; logits over classes."""
    model = make(config)
    (images,) = inputs(config)
    assert model.features(images).shape == (2, 6 + model.pool.extra, 8)
    assert model.pool.extra == OWN.get(config.pool, 0) + config.registers
    assert model(images).shape == (2, 5)


def test_the_papers_shapes() -> None:
    """V1, E6, E14: 224 in patches of 16 gives 196 tokens, 256 gives 256; E_pos has N + 1 rows."""
    with torch.device("meta"):
        for size, tokens in ((224, 196), (256, 256)):
            model = Vit(VitConfig(height=size, width=size))
            grid = model.config.grid
            assert grid[0] * grid[1] == tokens
            assert model.positions.table.shape == (tokens + 1, 768)
            assert model.patches(torch.empty(1, 3, size, size)).shape == (1, tokens, 768)


def test_a_fresh_model_finds_all_classes_equally_likely() -> None:
    """V6: a zero head: softmax of equal logits."""
    (images,) = inputs(BASE)
    assert Vit(BASE)(images).eq(0).all()


# --- Patches and positions ----------------------------------------------------------------------


@pytest.mark.parametrize("patches", ["linear", "conv"])
def test_fresh_weights(patches: Patches) -> None:
    """By the paper's code: LeCun for patches, Xavier in blocks, .02 for positions and class token.

    LeCun: variance 1 / inputs, so that patches of variance 1 become tokens of variance 1.
    """
    torch.manual_seed(0)
    config = VitConfig(
        height=64, width=64, patch=8, dim=128, layers=1, heads=2, ffn_dim=256, patches=patches
    )
    model = Vit(replace(config, representation=64))
    fresh = dict(model.named_parameters())

    def std(name: str) -> float:
        return fresh[name].std().item()

    assert std("patches.project.weight") == pytest.approx((3 * 8 * 8) ** -0.5, rel=0.02)
    assert std("representation.0.weight") == pytest.approx(128**-0.5, rel=0.03)
    assert std("positions.table") == pytest.approx(0.02, rel=0.03)
    assert std("pool.token") == pytest.approx(0.02, rel=0.2)
    for name, read, written in (("attention.qkv", 128, 384), ("feedforward.expand", 128, 256)):
        weight = fresh[f"encoder.blocks.0.{name}.weight"]
        limit = math.sqrt(6 / (read + written))
        assert 0.99 * limit < weight.abs().max() <= limit
        assert weight.std().item() == pytest.approx(limit / math.sqrt(3), rel=0.02)
    assert all(p.eq(0).all() for name, p in fresh.items() if name.endswith("bias"))
    wide = Vit(replace(config, position_std=0.5)).get_parameter("positions.table")
    assert wide.std().item() == pytest.approx(0.5, rel=0.03)


def test_both_forms_of_patches_give_the_same_logits() -> None:
    """V1: cut, flatten, multiply = a convolution with stride P, in the whole model."""
    conv = make(replace(BASE, patches="conv"))
    linear = Vit(replace(BASE, patches="linear")).eval()
    linear.load_state_dict(conv.state_dict())
    (images,) = inputs(BASE)
    close(linear(images), conv(images))


@pytest.mark.parametrize("pool", ["class", "mean"])
def test_without_positions_patches_are_a_set(pool: str) -> None:
    """V3: permuting the patches permutes their vectors and leaves the logits alone."""
    config = replace(BASE, positions="none", pool="mean" if pool == "mean" else "class")
    model, (images,) = make(config), inputs(BASE)
    order = [4, 0, 5, 2, 1, 3]
    shuffled = permute_patches(images, order)
    extra = model.pool.extra
    close(model.features(shuffled)[:, extra:], model.features(images)[:, extra:][:, order])
    close(model(shuffled), model(images))


@pytest.mark.parametrize("positions", ["learned", "sinusoidal-2d", "relative"])
@pytest.mark.parametrize("pool", ["class", "mean"])
def test_with_positions_the_order_matters(pool: Pool, positions: Positions) -> None:
    """V3: positions of every kind tell the patches apart."""
    model = make(replace(BASE, pool=pool, positions=positions))
    (images,) = inputs(BASE)
    shuffled = permute_patches(images, [4, 0, 5, 2, 1, 3])
    assert (model(shuffled) - model(images)).abs().max() > 0.01


@presets
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_another_image_size_runs(config: VitConfig, dtype: torch.dtype) -> None:
    """V9: positions are interpolated for 6 x 4 and 8 x 12 pixels, in fp32 and bf16."""
    model = make(config).to(dtype)
    for height, width in ((6, 4), (8, 12), (2, 2)):
        logits = model(torch.randn(2, 3, height, width, dtype=dtype))
        assert logits.shape == (2, 5)
        assert logits.isfinite().all()


def test_another_image_size_is_another_table() -> None:
    """V9: what a model does at 8 x 12 is what a model built for it does with resized positions."""
    small = make(BASE)
    large = Vit(replace(BASE, height=8, width=12)).eval()
    state = small.state_dict()
    state["positions.table"] = resize_grid(state["positions.table"], (2, 3), (4, 6), 1)
    large.load_state_dict(state)
    images = torch.randn(2, 3, 8, 12)
    close(small(images), large(images))


@pytest.mark.parametrize("patches", ["linear", "conv"])
def test_an_image_with_a_rest_is_refused(patches: str) -> None:
    """V1: the message names the image and the patch."""
    model = make(replace(BASE, patches="conv" if patches == "conv" else "linear"))
    with pytest.raises(UsageError, match=r"5 x 6 pixels .* patches of 2 x 2"):
        model(torch.zeros(1, 3, 5, 6))


@pytest.mark.parametrize(("height", "width"), [(225, 224), (224, 200)])
def test_a_config_with_a_rest_is_refused(height: int, width: int) -> None:
    """V1: before a model is built."""
    with pytest.raises(UsageError, match=rf"{height} x {width} pixels .* 16 x 16"):
        VitConfig(height=height, width=width)


# --- Parity -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vit-b", "post-norm relu"])
def test_logits_equal_torch_encoder(name: str) -> None:
    """V1-V6 (and V5): conv, class token, positions, nn.TransformerEncoder, LayerNorm, head."""
    config, (images,) = VITS[name], inputs(BASE)
    pre = config.norm == "pre"
    layer = nn.TransformerEncoderLayer(
        8,
        2,
        16,
        dropout=0.0,
        activation=config.activation,
        layer_norm_eps=config.norm_eps,
        batch_first=True,
        norm_first=pre,
    )
    theirs = randomise(
        nn.TransformerEncoder(
            layer,
            2,
            norm=nn.LayerNorm(8, eps=config.norm_eps) if pre else None,
            enable_nested_tensor=False,
        ),
    )
    model = randomise(Vit(config), seed=1)
    model.encoder = torch_reference.encoder_of(theirs)
    linear: Any = model.patches.project
    patches = F.conv2d(images, linear.weight.view(8, 3, 2, 2), linear.bias, stride=2)
    token = next(model.pool.parameters())
    x = torch.cat((token.expand(2, 1, 8), patches.flatten(2).transpose(1, 2)), dim=1)
    x = theirs(x + next(model.positions.parameters()))
    close(model(images), model.head(x[:, 0]))


def test_vit_equations_by_hand() -> None:
    """V4: z' = MSA(LN(z)) + z; z = MLP(LN(z')) + z'; y = LN(z_L), written out for one layer."""
    model = make(replace(BASE, layers=1, heads=1))
    (images,) = inputs(BASE)
    block = model.encoder.blocks[0]
    assert isinstance(block, EncoderBlock)
    feedforward = block.feedforward
    assert isinstance(feedforward, FeedForward)
    z = model.positions(model.pool.prepend(model.patches(images)), (2, 3))
    q, k, v = block.attention.qkv(block.around_attention.norm(z)).chunk(3, dim=-1)
    weights = (q @ k.transpose(1, 2) / math.sqrt(8)).softmax(-1)
    z = block.attention.out(weights @ v) + z
    normed = block.around_feedforward.norm(z)
    z = feedforward.contract(F.gelu(feedforward.expand(normed))) + z
    close(model.features(images), model.encoder.norm(z))


def test_vit_is_pre_norm_with_gelu_and_a_norm_before_the_head() -> None:
    """E7: LayerNorm precedes the classifier: features are normalised, logits are not."""
    config = VitConfig()
    assert (config.norm, config.activation) == ("pre", "gelu")
    model, (images,) = make(BASE), inputs(BASE)
    assert isinstance(model.encoder.norm, nn.LayerNorm)
    nn.init.ones_(model.encoder.norm.weight)
    nn.init.zeros_(model.encoder.norm.bias)
    vectors = model.features(images)
    close(vectors.mean(-1), torch.zeros(2, 7))
    close(vectors.var(-1, correction=0), torch.ones(2, 7), atol=1e-3)
    assert (model(images).mean(-1).abs() > 1e-3).all()


def test_the_slides_variant_is_post_norm_with_relu() -> None:
    """V5: selectable, and another function of the same parameters but the final norm."""
    model = make(VITS["post-norm relu"])
    assert isinstance(model.encoder.norm, nn.Identity)
    activations = [part for part in model.modules() if isinstance(part, nn.ReLU | nn.GELU)]
    assert [type(part) for part in activations] == [nn.ReLU] * 2
    (images,) = inputs(BASE)
    assert (model(images) - make(BASE)(images)).abs().max() > 0.01


def test_images_do_not_see_each_other() -> None:
    """A batch is a batch: each image gets the logits it gets alone."""
    model, (images,) = make(BASE), inputs(BASE)
    close(model(images)[1:], model(images[1:]))


# --- Parts ---------------------------------------------------------------------------------------


def test_a_plain_vit_has_the_names_it_always_had() -> None:
    """Models that were trained before the newer parts still load."""
    names = Vit(replace(BASE, layers=1)).state_dict()
    block = "encoder.blocks.0"
    assert set(names) == {
        "pool.token",
        "positions.table",
        *(f"patches.project.{part}" for part in ("weight", "bias")),
        *(f"{block}.attention.{layer}.{part}" for layer in ("qkv", "out") for part in WB),
        *(f"{block}.feedforward.{layer}.{part}" for layer in ("expand", "contract") for part in WB),
        *(
            f"{block}.around_{layer}.norm.{part}"
            for layer in ("attention", "feedforward")
            for part in WB
        ),
        *(f"encoder.norm.{part}" for part in WB),
        *(f"head.{part}" for part in WB),
    }


def test_linear_attention_has_no_scores_for_relative_positions() -> None:
    with pytest.raises(UsageError, match="linear attention forms none"):
        replace(BASE, attention="linear", positions="relative")


def test_linear_attention_is_another_part_with_the_same_parameters() -> None:
    """V16: it loads the same weights, answers differently, and records maps that are implied."""
    softmax, linear = make(BASE), Vit(replace(BASE, attention="linear")).eval()
    linear.load_state_dict(softmax.state_dict())
    (images,) = inputs(BASE)
    plain = linear(images)
    with record() as trace:
        assert torch.equal(linear(images), plain)
    assert (plain - softmax(images)).abs().max() > 1e-3
    layer_ids = [str(entry.layer_id) for entry in trace]
    assert layer_ids == ["encoder layer 1 self (implied)", "encoder layer 2 self (implied)"]


def test_dropout_of_a_map_that_is_not_formed_is_refused() -> None:
    with pytest.raises(UsageError, match=r"attention_dropout is 0\.1"):
        replace(BASE, attention="linear", attention_dropout=0.1)


def test_stochastic_depth_rises_with_depth() -> None:
    """V15: the first layer is always there; in evaluation all are."""
    torch.manual_seed(0)
    config = replace(BASE, drop_path=0.9)
    model = randomise(Vit(config))
    (images,) = inputs(BASE)
    plain = make(BASE)(images)
    close(model.eval()(images), plain)
    with torch.no_grad():
        assert any((model.train()(images) - plain).abs().max() > 0.01 for _ in range(5))
    rates = [part.p for part in model.modules() if isinstance(part, StochasticDepth)]
    assert rates == [0.9, 0.9]  # around attention and feed-forward of the second layer


# --- Learning -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vit-ti", "mean pool, linear patches", "post-norm relu"])
def test_one_batch_can_be_learned_by_heart(name: str) -> None:
    """The cheapest test of a training step: overfit 10 random images."""
    torch.manual_seed(0)
    model = Vit(replace(VITS[name], dim=32, heads=4, ffn_dim=64))
    images, labels = torch.randn(10, 3, 4, 6), torch.arange(10) % 5
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(200):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        if loss < 0.05:
            break
        optimizer.step()
    assert loss < 0.05


@presets
def test_every_parameter_learns(config: VitConfig) -> None:
    """No part of the model is left out of the computation."""
    model, (images,) = make(config).train(), inputs(config)
    model(images).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
