"""Hugging Face's ViT and DeiT -> ours, by the names of stored files; with a head or without."""

from dataclasses import replace
from typing import Any

import torch

from manyheads.models.convert.converter import HF_IDLE, HF_SIZES, Keys
from manyheads.models.convert.foreign import ForeignTensors, Settings, State
from manyheads.models.convert.layers import (
    ACTIVATION_NAMES,
    grid_positions,
    hf_vit_shape,
    packed,
    patches,
)
from manyheads.models.deit import DeitConfig
from manyheads.models.vit import VitConfig

IDLE = f"{HF_IDLE} attention_probs_dropout_prob encoder_stride hidden_dropout_prob"
# What Hugging Face leaves out of a config.json where it is the default.
VIT = Keys(
    kind="Hugging Face ViT",
    read={"image_size": 224, "layer_norm_eps": 1e-12, "num_attention_heads": 12},
    only={"hidden_act": ("gelu", *ACTIVATION_NAMES), "pooler_act": ("tanh",)},
    shown=f"{HF_SIZES} pooler_output_size",
    idle=IDLE,
)
# Modules of a layer, theirs and ours; queries, keys and values are packed separately.
LAYER = {
    "layernorm_before": "around_attention.norm",
    "attention.output.dense": "attention.out",
    "layernorm_after": "around_feedforward.norm",
    "intermediate.dense": "feedforward.expand",
    "output.dense": "feedforward.contract",
}
QKV = ("query", "key", "value")


@VIT.reader
def vit(settings: Settings, given: ForeignTensors) -> tuple[VitConfig, State]:
    """Map a ViTForImageClassification or a ViTModel; its pooler is a tanh layer."""
    return _read(settings, given, "vit.")


@replace(VIT, kind="Hugging Face DeiT").reader
def deit(settings: Settings, given: ForeignTensors) -> tuple[VitConfig, State]:
    """Map a DeiTForImageClassificationWithTeacher to our Deit.

    With one head or none, which read the class token alone, the distillation token is a register.
    """
    return _read(settings, given, "deit.")


def _read(settings: Settings, given: ForeignTensors, prefix: str) -> tuple[VitConfig, State]:
    inner = given.within([prefix, ""])
    kernel, state = patches(given, f"{inner}embeddings.patch_embeddings.projection")
    names = ("cls_token", "distillation_token")[: 1 + (prefix == "deit.")]
    tokens = [given.take(f"{inner}embeddings.{name}") for name in names]
    state["pool.token"] = torch.cat(tokens, dim=1)
    positions = given.take(f"{inner}embeddings.position_embeddings")[0]
    given.skip([f"{inner}embeddings.mask_token"])
    layers = f"{inner}encoder.layer."
    depth = given.count(layers)
    for layer in range(depth):
        theirs, ours = f"{layers}{layer}", f"encoder.blocks.{layer}"
        state |= given.modules(theirs, ours, LAYER)
        qkv = [f"{theirs}.attention.attention.{part}" for part in QKV]
        state |= packed(given, qkv, f"{ours}.attention.qkv")
    state |= given.module(f"{inner}layernorm", "encoder.norm")
    parts: dict[str, Any] = {}
    if f"{inner}pooler.dense.weight" in given:
        state |= given.module(f"{inner}pooler.dense", "representation.0")
        parts["representation"] = len(state["representation.0.bias"])
    two = "cls_classifier.weight" in given
    if two:
        state |= given.module("cls_classifier", "head")
        state |= given.module("distillation_classifier", "teacher_head")
    elif "classifier.weight" in given:
        state |= given.module("classifier", "head")
    parts |= hf_vit_shape(settings, state, kernel, depth)
    config = DeitConfig(**parts) if two else VitConfig(**parts, registers=len(tokens) - 1)
    state["positions.table"] = grid_positions(positions, config.grid, len(tokens))
    return config, state
