"""Hugging Face's ViTForImageClassification -> our Vit, by the names of its stored files."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert.foreign import ForeignTensors, grid_positions, height_and_width
from manyheads.models.convert.layers import packed
from manyheads.models.parts import ACTIVATIONS, Activation
from manyheads.models.vit import VitConfig

# What Hugging Face leaves out of a config.json where it is the default.
DEFAULTS: dict[str, Any] = {
    "hidden_act": "gelu",
    "image_size": 224,
    "layer_norm_eps": 1e-12,
    "num_attention_heads": 12,
}
# Modules of a layer, theirs and ours; queries, keys and values are packed separately.
LAYER = {
    "layernorm_before": "around_attention.norm",
    "attention.output.dense": "attention.out",
    "layernorm_after": "around_feedforward.norm",
    "intermediate.dense": "feedforward.expand",
    "output.dense": "feedforward.contract",
}


def read_activation(settings: Mapping[str, Any]) -> Activation:
    """Read what bends between the feed-forward layers.

    Raises:
        UsageError: ours does not know it.
    """
    activation: Activation = settings["hidden_act"]
    if activation not in ACTIVATIONS:
        raise UsageError(
            f"This Hugging Face model has hidden_act {activation!r}; "
            f"ours knows {', '.join(ACTIVATIONS)}."
        )
    return activation


def blocks(given: ForeignTensors, layers: str) -> tuple[dict[str, Tensor], int]:
    """Take the blocks of a ViT or DeiT, and count them."""
    state: dict[str, Tensor] = {}
    depth = given.count(layers)
    for layer in range(depth):
        theirs, ours = f"{layers}{layer}", f"encoder.blocks.{layer}"
        for their_part, our_part in LAYER.items():
            state |= given.module(f"{theirs}.{their_part}", f"{ours}.{our_part}")
        qkv = [f"{theirs}.attention.attention.{part}" for part in ("query", "key", "value")]
        state |= packed(given, qkv, f"{ours}.attention.qkv")
    return state, depth


def vit(
    config: Mapping[str, Any] | object, tensors: Mapping[str, Tensor]
) -> tuple[VitConfig, dict[str, Tensor]]:
    """Map a Hugging Face ViT with a class token; dropout is a matter of training and stays 0.

    Args:
        config: the content of config.json, or a ViTConfig.
        tensors: the content of model.safetensors.

    Returns:
        The Config of our Vit, and its state dict.

    Raises:
        UsageError: the model has something that ours has not, or lacks something.
    """
    settings = DEFAULTS | dict(config if isinstance(config, Mapping) else vars(config))
    activation = read_activation(settings)
    given = ForeignTensors(tensors, "Hugging Face ViT")
    embeddings, layers = "vit.embeddings", "vit.encoder.layer."
    positions = given.take(f"{embeddings}.position_embeddings")[0]
    kernel = given.take(f"{embeddings}.patch_embeddings.projection.weight")
    state = {
        "pool.token": given.take(f"{embeddings}.cls_token"),
        "patches.project.weight": kernel.flatten(1),
        "patches.project.bias": given.take(f"{embeddings}.patch_embeddings.projection.bias"),
    }
    taken, depth = blocks(given, layers)
    state |= taken
    state |= given.module("vit.layernorm", "encoder.norm")
    state |= given.module("classifier", "head")
    given.finish()
    height, width = height_and_width(settings["image_size"])
    result = VitConfig(
        height=height,
        width=width,
        channels=kernel.shape[1],
        patch=kernel.shape[2],
        dim=kernel.shape[0],
        layers=depth,
        heads=settings["num_attention_heads"],
        hidden=len(state["encoder.blocks.0.feedforward.expand.bias"]),
        classes=len(state["head.bias"]),
        activation=activation,
        norm_eps=settings["layer_norm_eps"],
    )
    state["positions.table"] = grid_positions(positions, result.grid, extra=1)
    return result, state
