"""Layers by name: what learns more slowly, and what does not learn at all."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from manyheads.errors import TrainingError
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import build
from manyheads.train.layer_groups import depths, freeze, set_frozen_eval
from manyheads.train.optim import SCALE, optimizer
from tests.small import CCTS, CONVOLUTIONAL, DEITS, STAGED, VITS
from tests.train.toy import config


class Staged(nn.Module):
    """Stages of blocks, as a hierarchical model has them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 2, 1)
        self.stages = nn.ModuleList(
            nn.ModuleDict(
                {
                    "merge": nn.Linear(2, 2),
                    "blocks": nn.ModuleList(
                        nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)) for _ in range(2)
                    ),
                }
            )
            for _ in range(2)
        )
        self.norm = nn.BatchNorm2d(2)
        self.head = nn.Linear(2, 2)


def test_the_layers_of_a_vit() -> None:
    """Patches, class token and positions are 0; two blocks; norm and head on top."""
    found = depths(build(VITS["vit-b"]))
    assert found["patches.project.weight"] == found["pool.token"] == found["positions.table"] == 0
    assert found["encoder.blocks.0.feedforward.expand.weight"] == 1
    assert found["encoder.blocks.1.feedforward.expand.weight"] == 2
    assert found["encoder.norm.weight"] == found["head.weight"] == 3


def test_the_layers_of_stages() -> None:
    """Stem; merge, block, block of each stage; head. Layers inside a block are one."""
    found = depths(Staged())
    order = ["stem.weight", "stages.0.merge.weight", "stages.0.blocks.0.0.weight"]
    order += ["stages.0.blocks.1.1.weight", "stages.1.merge.bias", "stages.1.blocks.0.0.weight"]
    order += ["stages.1.blocks.1.0.bias", "norm.weight"]
    assert [found[name] for name in order] == list(range(8))
    assert found["head.weight"] == 7


def test_a_block_may_have_parameters_of_its_own() -> None:
    """Beside those of its parts; a numbered part without parts is none of its layers."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain = nn.Parameter(torch.ones(2))
            self.parts = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))

    assert depths(nn.Sequential(Block(), Block())) == {
        "0.gain": 1,
        "0.parts.0.weight": 1,
        "0.parts.0.bias": 1,
        "0.parts.1.0.weight": 2,
        "0.parts.1.0.bias": 2,
        "1.gain": 3,
        "1.parts.0.weight": 3,
        "1.parts.0.bias": 3,
        "1.parts.1.0.weight": 4,
        "1.parts.1.0.bias": 4,
    }


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (
            STAGED["swin-t"],
            {
                "patches.project.weight": 0,
                "stages.0.blocks.0.attention.bias.table": 1,
                "stages.0.blocks.1.feedforward.expand.weight": 2,
                "stages.1.merge.project.weight": 3,
                "stages.1.blocks.0.attention.attention.qkv.weight": 4,
                "stages.1.blocks.1.around_attention.norm.weight": 5,
                "norm.weight": 6,
                "head.weight": 6,
            },
        ),
        (
            CONVOLUTIONAL["resnet-18"],
            {
                "stem.convolution.norm.weight": 0,
                "stages.0.0.first.norm.weight": 1,
                "stages.0.1.second.norm.weight": 2,
                "stages.1.0.shortcut.norm.weight": 3,
                "head.weight": 4,
            },
        ),
        (
            STAGED["coatnet as timm trains"],
            {
                "stem.first.weight": 0,
                "stages.0.0.layers.expand.weight": 1,
                "stages.0.1.layers.squeeze.excite.weight": 2,
                "stages.1.0.end.1.gain": 3,
                "stages.1.1.feedforward.expand.weight": 4,
                "pool.hidden.weight": 5,
                "head.weight": 5,
            },
        ),
        (
            CONVOLUTIONAL["vgg-16-bn"],
            {"layers.0.0.weight": 1, "layers.0.1.weight": 1, "layers.2.0.weight": 2},
        ),
        (
            VITS["2-D sinusoids, attention pool"],
            {
                "patches.project.weight": 0,
                "pool.query": 3,
                "pool.attention.qkv.weight": 3,
                "encoder.blocks.1.attention.qkv.weight": 2,
                "head.weight": 3,
            },
        ),
        (CCTS["cct-7/3x1"], {"stem.layers.0.weight": 0, "pool.query": 3, "encoder.norm.weight": 3}),
        (VITS["representation"], {"pool.token": 0, "representation.0.weight": 3}),
    ],
    ids=["swin", "resnet", "coatnet", "vgg", "attention pool", "sequence pool", "representation"],
)
def test_blocks_count_within_stages(config: ModelConfig, expected: dict[str, int]) -> None:
    """Not stages; heads and pools that learn are the top, wherever they are registered."""
    found = depths(build(config))
    assert {name: found[name] for name in expected} == expected
    levels = set(found.values())
    assert levels == set(range(min(levels), max(levels) + 1))


def test_layer_decay_scales_learning_rates() -> None:
    """The head learns at the full rate, each layer below at half of the one above."""
    model = build(VITS["vit-b"])
    made = optimizer(model, config(layer_decay=0.5, weight_decay=0.1))
    scale = {id(p): group[SCALE] for group in made.param_groups for p in group["params"]}
    decay = {id(p): group["weight_decay"] for group in made.param_groups for p in group["params"]}
    named = dict(model.named_parameters())
    assert len(scale) == len(named)
    assert scale[id(named["head.weight"])] == 1.0
    assert scale[id(named["encoder.blocks.1.attention.out.weight"])] == 0.5
    assert scale[id(named["positions.table"])] == 0.125
    assert decay[id(named["encoder.blocks.0.feedforward.expand.bias"])] == 0.0
    assert decay[id(named["encoder.blocks.0.feedforward.expand.weight"])] == 0.1


def test_muon_keeps_layers_apart_too() -> None:
    """Both optimizers' groups carry the factor."""
    model = build(VITS["vit-b"])
    groups = optimizer(model, config(layer_decay=0.5, muon=True)).param_groups
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))
    assert {group[SCALE] for group in groups if group["params"]} == {1.0, 0.5, 0.25, 0.125}


def test_freezing_by_the_beginning_of_names() -> None:
    """A whole name between dots, not a part of a word."""
    model = Staged()
    freeze(model, ["stem", "stages.0"])
    still = {name for name, p in model.named_parameters() if not p.requires_grad}
    assert still == {n for n, _ in model.named_parameters() if n.startswith(("stem", "stages.0."))}


def test_all_but_the_head() -> None:
    """A probe."""
    model = Staged()
    freeze(model, ["!head"])
    assert [n for n, p in model.named_parameters() if p.requires_grad] == [
        "head.weight",
        "head.bias",
    ]


def test_all_but_both_heads_of_deit() -> None:
    """ "head" is what the model says is one."""
    model = build(DEITS["deit-ti"])
    freeze(model, ["!head"])
    learning = [name.partition(".")[0] for name, p in model.named_parameters() if p.requires_grad]
    assert learning == ["head", "head", "teacher_head", "teacher_head"]


def test_what_has_no_parameters_rests_with_the_part_before_it() -> None:
    """Dropout of frozen embeddings and blocks; a head's own dropout or a learning part's not."""
    config = replace(VITS["vit-b"], dropout=0.5, drop_path=0.5)
    model = build(config).train()
    freeze(model, ["!head"])
    set_frozen_eval(model)
    awake = [name for name, part in model.named_modules() if part.training]
    assert awake == ["", "head"]
    model = build(config).train()
    freeze(model, ["patches", "encoder.blocks.1"])
    set_frozen_eval(model)
    awake = [name for name, part in model.named_modules() if part.training]
    assert "dropout" in awake  # behind positions that learn
    assert "encoder.blocks.0.around_attention.dropout" in awake
    assert not any(name.startswith(("patches", "encoder.blocks.1")) for name in awake)


def test_frozen_parts_rest() -> None:
    """Running means stay, dropout is off; what learns stays in training mode."""
    model = Staged().train()
    freeze(model, ["!head"])
    set_frozen_eval(model)
    assert not model.norm.training
    assert model.head.training
    model.norm(torch.randn(4, 2, 3, 3))
    assert model.norm.running_mean is not None
    assert model.norm.running_mean.abs().max() == 0


def test_freezing_that_cannot_be() -> None:
    """A name that fits nothing, and nothing left to train."""
    with pytest.raises(TrainingError, match=r"begins with 'steam': did you mean 'stem'\?"):
        freeze(Staged(), ["steam"])
    with pytest.raises(TrainingError, match="leaves nothing to train"):
        freeze(Staged(), ["stem", "stages", "norm", "head"])
