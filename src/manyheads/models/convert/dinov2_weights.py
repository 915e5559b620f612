"""Hugging Face's DINOv2, with registers or without, by the names of its stored files."""

import torch

from manyheads.models.convert import hf
from manyheads.models.convert.converter import ACTIVATION_NAMES, keys, name_map
from manyheads.models.convert.foreign import ForeignTensors, Settings, State
from manyheads.models.convert.layers import (
    LAYER_SCALE,
    MLP,
    encoder_blocks,
    grid_positions,
    hf_embeddings,
    layer_scales,
    swiglu,
    vit_shape,
)
from manyheads.models.vit import VitConfig

LAYER = name_map("hf dinov2")
SCALES = ("layer_scale1.lambda1", "layer_scale2.lambda1")


@keys("hf dinov2").reader
def from_hf(settings: Settings, weights: ForeignTensors) -> tuple[VitConfig, State]:
    """Map a Dinov2Model or a Dinov2ForImageClassification, and both with registers."""
    inner = weights.within(["dinov2.", "dinov2_with_registers.", ""])
    registers = f"{inner}embeddings.register_tokens" in weights
    names = ("cls_token", "register_tokens")[: 1 + registers]
    kernel, positions, state = hf_embeddings(weights, inner, names)
    gated = settings["use_swiglu_ffn"]
    layers = f"{inner}encoder.layer."
    qkv = [f"attention.attention.{part}" for part in hf.QKV]
    depth = encoder_blocks(weights, layers, state, LAYER if gated else LAYER | MLP, qkv)
    for layer in range(depth):
        theirs, ours = f"{layers}{layer}", f"encoder.blocks.{layer}"
        state |= layer_scales(weights, theirs, ours, SCALES)
        if gated:
            both = f"{theirs}.mlp.weights_in", f"{theirs}.mlp.weights_out"
            state |= swiglu(weights, *both, f"{ours}.feedforward")
    state |= weights.module(f"{inner}layernorm", "encoder.norm")
    head = "classifier.weight" in weights
    if head:
        state |= weights.module("classifier", "head")
    config = VitConfig(
        **vit_shape(state, kernel, settings["image_size"], depth),
        heads=settings["num_attention_heads"],
        activation="swiglu" if gated else ACTIVATION_NAMES[settings["hidden_act"]],
        norm_eps=settings["layer_norm_eps"],
        layer_scale=settings["layerscale_value"] or LAYER_SCALE,
        registers=state["pool.token"].shape[1] - 1,
        pool="class-and-mean" if head else "class",
    )
    # Registers, which come in between, have no positions.
    table = grid_positions(positions, config.grid, 1)
    between = table.new_zeros(config.registers, config.dim)
    state["positions.table"] = torch.cat((table[:1], between, table[1:]))
    return config, state
