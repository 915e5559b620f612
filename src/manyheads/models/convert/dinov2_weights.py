"""Hugging Face's DINOv2, with registers or without, by the names of its stored files."""

import torch

from manyheads.models.convert import hf
from manyheads.models.convert.converter import HF_SIZES, Keys
from manyheads.models.convert.foreign import ForeignTensors, Settings, State
from manyheads.models.convert.layers import (
    ACTIVATION_NAMES,
    LAYER_SCALE,
    grid_positions,
    layer_scales,
    packed,
    patches,
    swiglu,
    vit_shape,
)
from manyheads.models.vit import VitConfig

KEYS = Keys(
    kind="Hugging Face DINOv2",
    read={
        "image_size": 224,
        "layer_norm_eps": 1e-6,
        "layerscale_value": 1.0,
        "num_attention_heads": 12,
        "use_swiglu_ffn": False,
    },
    only={"hidden_act": ("gelu", *ACTIVATION_NAMES)},
    shown=f"{HF_SIZES} num_register_tokens=registers mlp_ratio",
    idle=f"{hf.IDLE} drop_path_rate use_mask_token apply_layernorm reshape_hidden_states",
)
LAYER = {
    "norm1": "around_attention.norm",
    "attention.output.dense": "attention.out",
    "norm2": "around_feedforward.norm",
}
MLP = {"mlp.fc1": "feedforward.expand", "mlp.fc2": "feedforward.contract"}
SCALES = {"layer_scale1.lambda1": "around_attention", "layer_scale2.lambda1": "around_feedforward"}


@KEYS.reader
def from_hf(settings: Settings, given: ForeignTensors) -> tuple[VitConfig, State]:
    """Map a Dinov2Model or a Dinov2ForImageClassification, and both with registers.

    The mask token is of use in pre-training only.
    """
    inner = given.within(["dinov2.", "dinov2_with_registers.", ""])
    embeddings = f"{inner}embeddings"
    kernel, state = patches(given, f"{embeddings}.patch_embeddings.projection")
    tokens = [given.take(f"{embeddings}.cls_token")]
    if f"{embeddings}.register_tokens" in given:
        tokens.append(given.take(f"{embeddings}.register_tokens"))
    state["pool.token"] = torch.cat(tokens, dim=1)
    positions = given.take(f"{embeddings}.position_embeddings")[0]
    given.skip([f"{embeddings}.mask_token"])
    gated = settings["use_swiglu_ffn"]
    depth = given.count(f"{inner}encoder.layer.")
    for layer in range(depth):
        theirs, ours = f"{inner}encoder.layer.{layer}", f"encoder.blocks.{layer}"
        state |= given.modules(theirs, ours, LAYER if gated else LAYER | MLP)
        qkv = [f"{theirs}.attention.attention.{part}" for part in ("query", "key", "value")]
        state |= packed(given, qkv, f"{ours}.attention.qkv")
        pairs = {f"{theirs}.{key}": f"{ours}.{value}" for key, value in SCALES.items()}
        state |= layer_scales(given, pairs)
        if gated:
            both = f"{theirs}.mlp.weights_in", f"{theirs}.mlp.weights_out"
            state |= swiglu(given, *both, f"{ours}.feedforward")
    state |= given.module(f"{inner}layernorm", "encoder.norm")
    head = "classifier.weight" in given
    if head:
        state |= given.module("classifier", "head")
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
