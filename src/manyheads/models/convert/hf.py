"""Hugging Face's ViT and DeiT for image classification -> ours, by the names of stored files."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import torch

from manyheads.errors import UsageError
from manyheads.models.components import ACTIVATIONS
from manyheads.models.convert.foreign import ForeignTensors, Settings, State, Tensors
from manyheads.models.convert.layers import completed, grid_positions, packed, patches, vit_shape
from manyheads.models.deit import DeitConfig
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
QKV = ("query", "key", "value")
C = TypeVar("C", bound=VitConfig)


def vit(settings: Settings | object, tensors: Tensors) -> tuple[VitConfig, State]:
    """Map a ViTForImageClassification with a class token."""
    return _read(settings, tensors, VitConfig, "ViT", {"classifier": "head"}, ["cls_token"])


def deit(settings: Settings | object, tensors: Tensors) -> tuple[DeitConfig, State]:
    """Map a DeiTForImageClassificationWithTeacher."""
    heads = {"cls_classifier": "head", "distillation_classifier": "teacher_head"}
    tokens = ["cls_token", "distillation_token"]
    return _read(settings, tensors, DeitConfig, "DeiT", heads, tokens)


def _read(
    told: Settings | object,
    tensors: Tensors,
    kind: type[C],
    name: str,
    heads: Mapping[str, str],
    tokens: Sequence[str],
) -> tuple[C, State]:
    settings = completed(told, DEFAULTS)
    activation = settings["hidden_act"]
    if activation not in ACTIVATIONS:
        raise UsageError(
            f"This Hugging Face model has hidden_act {activation!r}; "
            f"supported: {', '.join(ACTIVATIONS)}."
        )
    given = ForeignTensors(tensors, f"Hugging Face {name}")
    embeddings, layers = f"{name.lower()}.embeddings", f"{name.lower()}.encoder.layer."
    kernel, state = patches(given, f"{embeddings}.patch_embeddings.projection")
    state["pool.token"] = torch.cat([given.take(f"{embeddings}.{each}") for each in tokens], dim=1)
    positions = given.take(f"{embeddings}.position_embeddings")[0]
    depth = given.count(layers)
    for layer in range(depth):
        theirs, ours = f"{layers}{layer}", f"encoder.blocks.{layer}"
        state |= given.modules(theirs, ours, LAYER)
        qkv = [f"{theirs}.attention.attention.{part}" for part in QKV]
        state |= packed(given, qkv, f"{ours}.attention.qkv")
    state |= given.module(f"{name.lower()}.layernorm", "encoder.norm")
    for theirs, ours in heads.items():
        state |= given.module(theirs, ours)
    given.finish()
    config = kind(
        **vit_shape(state, kernel, settings["image_size"], depth),
        heads=settings["num_attention_heads"],
        activation=activation,
        norm_eps=settings["layer_norm_eps"],
    )
    state["positions.table"] = grid_positions(positions, config.grid, extra=len(tokens))
    return config, state
