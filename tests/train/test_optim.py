"""The optimizers."""

import pytest
import torch
from torch import nn

from manyheads.errors import TrainingError
from manyheads.models.airbench import AirbenchConfig
from manyheads.models.presets import build
from manyheads.models.transformer import TransformerConfig
from manyheads.models.vit import VitConfig
from manyheads.train.optim import Together, optimizer
from tests.small import STAGED, TRANSFORMERS, VITS
from tests.train.toy import config


def test_weight_decay_is_for_matrices() -> None:
    """With no gradient to follow, matrices shrink by rate x decay; biases and norms stay."""
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    for parameter in model.parameters():
        nn.init.ones_(parameter)
        parameter.grad = torch.zeros_like(parameter)
    optimizer(model, config(learning_rate=0.1, weight_decay=0.5)).step()
    found = {name: parameter.flatten()[0].item() for name, parameter in model.named_parameters()}
    assert found == {
        "0.weight": pytest.approx(1 - 0.1 * 0.5),
        "0.bias": 1.0,
        "1.weight": 1.0,
        "1.bias": 1.0,
    }


def test_one_step_by_hand() -> None:
    """The first step of Adam has the length of the learning rate, whatever the gradient's."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    model.weight.grad = torch.full((1, 1), 123.0)
    optimizer(model, config(learning_rate=0.1)).step()
    assert model.weight.item() == pytest.approx(0.9)


def test_two_steps_by_hand() -> None:
    """Algorithm 1 of Kingma & Ba 2015 with gradients 1 and 3: beta1 = .5 and beta2 = .75.

    m = .5 * .5 * 1 + .5 * 3 = 1.75, without its bias 1.75 / (1 - .5^2) = 7/3;
    v = .75 * .25 * 1 + .25 * 9 = 2.4375, without its bias 2.4375 / (1 - .75^2) = 39/7.
    """
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    made = optimizer(model, config(learning_rate=0.1, beta1=0.5, beta2=0.75))
    for gradient in (1.0, 3.0):
        model.weight.grad = torch.full((1, 1), gradient)
        made.step()
    assert model.weight.item() == pytest.approx(1 - 0.1 - 0.1 * 7 / 3 / (39 / 7) ** 0.5)


def test_the_moments_forget_as_the_recipe_says() -> None:
    """Defaults: 0.9 and 0.98, as section 5.3 of Vaswani et al. 2017; both groups have them."""
    groups = optimizer(nn.Linear(2, 2), config()).param_groups
    assert [group["betas"] for group in groups] == [(0.9, 0.98)] * 2


def test_frozen_parameters_are_left_alone() -> None:
    """What needs no gradient needs no moments either."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].requires_grad_(False)
    groups = optimizer(model, config()).param_groups
    assert sum(len(group["params"]) for group in groups) == 2


@pytest.mark.parametrize("small", [TRANSFORMERS["transformer-tiny"], VITS["vit-ti"]])
def test_muon_moves_matrices_of_blocks_in_all_directions(
    small: TransformerConfig | VitConfig,
) -> None:
    """An update is nearly orthogonal, however lopsided the gradient; the rest follows Adam.

    Newton-Schulz iteration leaves singular values between about .7 and 1.2 (Jordan et al. 2024),
    and the factor .2 sqrt(longer side) makes the root mean square that of an update of AdamW.
    """
    torch.manual_seed(0)
    model = build(small)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter) * torch.rand(parameter.shape[-1])
    optimizer(model, config(learning_rate=0.1, muon=True)).step()
    moved = {name: (p - before[name]).detach() for name, p in model.named_parameters()}
    weight = moved["encoder.blocks.0.feedforward.expand.weight"]
    singular = torch.linalg.svdvals(weight) / (0.1 * 0.2 * max(weight.shape) ** 0.5)
    assert 0.6 < singular.min() < singular.max() < 1.3
    for name, by_adam in moved.items():
        if "embedding" in name or "bias" in name:
            assert by_adam.abs().mean().item() == pytest.approx(0.1, rel=1e-2)


@pytest.mark.parametrize("name", ["swin-t", "cvt-13", "coatnet as timm trains"])
def test_muon_finds_every_block_with_attention(name: str) -> None:
    """Windows, convolution-projected and relative attention: all linear layers of the blocks."""
    model = build(STAGED[name])
    made = optimizer(model, config(muon=True))
    assert isinstance(made, Together)
    moved = {id(p) for group in made.parts[0].param_groups for p in group["params"]}
    names = {name for name, p in model.named_parameters() if id(p) in moved}
    inside = [
        f"{block}.{layer}.weight"
        for block, part in model.named_modules()
        if hasattr(part, "feedforward")
        for layer, linear in part.named_modules()
        if isinstance(linear, nn.Linear)
    ]
    assert names == set(inside)
    assert sum("qkv" in name for name in names) == sum(
        type(m).__name__.endswith("Attention") and hasattr(m, "qkv") for m in model.modules()
    )
    assert any(name.endswith("feedforward.expand.weight") for name in names)


def test_muon_decays_weights() -> None:
    """With no gradient to follow, its matrices shrink by rate x decay, as AdamW's do."""
    model = build(VITS["vit-ti"])
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer(model, config(learning_rate=0.1, weight_decay=0.5, muon=True)).step()
    for name, parameter in model.named_parameters():
        shrunk = 1 - 0.1 * 0.5 if parameter.ndim >= 2 else 1.0
        torch.testing.assert_close(parameter.detach(), shrunk * before[name], msg=name)


def test_muon_needs_blocks() -> None:
    """A plain network has no matrices for it: better said than silently left to AdamW."""
    with pytest.raises(TrainingError, match=r"Transformer blocks .*, but Sequential has none"):
        optimizer(nn.Sequential(nn.Linear(2, 2)), config(muon=True))


def test_muon_trains_filters() -> None:
    """Of airbench all but the first, which are fixed; norms and head follow Adam."""
    model = build(AirbenchConfig(widths=(4, 8)))
    made = optimizer(model, config(muon=True))
    assert isinstance(made, Together)
    moved = {id(p) for group in made.parts[0].param_groups for p in group["params"]}
    names = {name for name, p in model.named_parameters() if id(p) in moved}
    layers = [f"{group}.{layer}" for group in (0, 1) for layer in ("first", "second")]
    assert names == {f"groups.{layer}.weight" for layer in layers}
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    made.step()
