"""What is added to a variance before its root is taken, in every norm of every model."""

from dataclasses import fields, replace
from typing import Any

import pytest
from torch import nn

from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import build
from tests.small import ALL, EVERY, IMAGES, Both

CONFIGS: dict[str, ModelConfig] = {**ALL, **EVERY, **IMAGES}
NORMS = (nn.LayerNorm, nn.BatchNorm2d, nn.GroupNorm)


def epsilons(config: ModelConfig) -> dict[str, float]:
    parts = build(config).named_modules()
    return {
        f"{type(part).__name__} {name}": part.eps for name, part in parts if isinstance(part, NORMS)
    }


@pytest.mark.parametrize(
    "name", [name for name, c in CONFIGS.items() if "norm_eps" in {each.name for each in fields(c)}]
)
def test_layer_norms_have_the_models_epsilon(name: str) -> None:
    """Weights of other libraries were learned with theirs; norms over batches and groups: 1e-5."""
    config: Any = CONFIGS[name]
    config = replace(config, norm_eps=0.125)
    if isinstance(config, Both):
        inner: Any = config.image
        config = replace(config, image=replace(inner, norm_eps=0.125))
    found = epsilons(config)
    fixed = set() if getattr(CONFIGS[name], "pool", None) == "map" else {"LayerNorm pool.norm"}
    layers = {each for each in found if each.startswith("LayerNorm ") and each not in fixed}
    assert layers
    assert {each: found[each] for each in layers} == dict.fromkeys(layers, 0.125)
    assert {found[each] for each in found.keys() - layers} <= {1e-5}


def test_norms_of_convolutional_models() -> None:
    """As their papers' code: torch's 1e-5, and 1e-6 in CoAtNet's Transformer blocks."""
    for name, config in CONFIGS.items():
        if "norm_eps" not in {each.name for each in fields(config)}:
            found = epsilons(config)
            assert {eps for each, eps in found.items() if "LayerNorm" in each} <= {1e-6}, name
            assert {eps for each, eps in found.items() if "LayerNorm" not in each} <= {1e-5}, name
