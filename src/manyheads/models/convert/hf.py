"""Hugging Face's ViT and DeiT -> ours, by the names of stored files; with a head or without."""

from typing import Any

from manyheads.models.convert.converter import keys, name_map
from manyheads.models.convert.foreign import ForeignTensors, Settings, State
from manyheads.models.convert.layers import (
    encoder_blocks,
    grid_positions,
    hf_embeddings,
    hf_vit_shape,
)
from manyheads.models.deit import DeitConfig
from manyheads.models.vit import VitConfig

LAYER = name_map("hf vit")
QKV = ("query", "key", "value")


@keys("hf vit").reader
def vit(settings: Settings, weights: ForeignTensors) -> tuple[VitConfig, State]:
    """Map a ViTForImageClassification or a ViTModel; its pooler is a tanh layer."""
    return _read(settings, weights, "vit.")


@keys("hf deit").reader
def deit(settings: Settings, weights: ForeignTensors) -> tuple[VitConfig, State]:
    """Map a DeiTForImageClassificationWithTeacher to our Deit.

    With one head or none, which read the class token alone, the distillation token is a register.
    """
    return _read(settings, weights, "deit.")


def _read(settings: Settings, weights: ForeignTensors, prefix: str) -> tuple[VitConfig, State]:
    inner = weights.within([prefix, ""])
    names = ("cls_token", "distillation_token")[: 1 + (prefix == "deit.")]
    kernel, positions, state = hf_embeddings(weights, inner, names)
    qkv = [f"attention.attention.{part}" for part in QKV]
    depth = encoder_blocks(weights, f"{inner}encoder.layer.", state, LAYER, qkv)
    state |= weights.module(f"{inner}layernorm", "encoder.norm")
    parts: dict[str, Any] = {}
    if f"{inner}pooler.dense.weight" in weights:
        state |= weights.module(f"{inner}pooler.dense", "representation.0")
        parts["representation"] = len(state["representation.0.bias"])
    two = "cls_classifier.weight" in weights
    if two:
        state |= weights.module("cls_classifier", "head")
        state |= weights.module("distillation_classifier", "teacher_head")
    elif "classifier.weight" in weights:
        state |= weights.module("classifier", "head")
    parts |= hf_vit_shape(settings, state, kernel, depth)
    config = DeitConfig(**parts) if two else VitConfig(**parts, registers=len(names) - 1)
    state["positions.table"] = grid_positions(positions, config.grid, len(names))
    return config, state
