"""timm's VisionTransformer -> our Vit, our Deit, or Hybrid where a ResNet makes the tokens."""

from typing import Any

import torch

from manyheads.errors import UsageError
from manyheads.models.convert.converter import ACTIVATION_NAMES, keys, name_map
from manyheads.models.convert.foreign import ForeignTensors, Settings, State
from manyheads.models.convert.layers import (
    LAYER_SCALE,
    MLP,
    encoder_blocks,
    grid_positions,
    image_size,
    layer_scales,
    packed,
    patches,
    swiglu,
    vit_shape,
)
from manyheads.models.deit import DeitConfig
from manyheads.models.hybrid import STEM_STRIDE, HybridConfig
from manyheads.models.image_encoder import Pool
from manyheads.models.vit import VitConfig

ATTENTION, POOL = name_map("timm vit"), name_map("timm vit pool")
# Convolutions of a residual block with the norms behind them, theirs and ours.
RESIDUAL = {"1": "reduce", "2": "mix", "3": "expand"}
BACKBONE = "patch_embed.backbone"


@keys("timm deit").reader
def deit(settings: Settings, weights: ForeignTensors) -> tuple[DeitConfig, State]:
    """Map a VisionTransformerDistilled; without the distillation token it is a plain ViT."""
    kernel, state = patches(weights, "patch_embed.proj")
    state["pool.token"] = torch.cat((weights.take("cls_token"), weights.take("dist_token")), dim=1)
    positions = weights.take("pos_embed")[0]
    depth, parts = _take_blocks(weights, state)
    for theirs, ours in {
        "norm": "encoder.norm",
        "head": "head",
        "head_dist": "teacher_head",
    }.items():
        state |= weights.module(theirs, ours)
    shape = vit_shape(state, kernel, settings["img_size"], depth)
    shape["activation"] = ACTIVATION_NAMES[settings["act_layer"] or "gelu"]
    config = DeitConfig(**shape | parts, heads=settings["num_heads"], norm_eps=settings["norm_eps"])
    state["positions.table"] = grid_positions(positions, config.grid, extra=2)
    return config, state


@keys("timm vit").reader
def vit(settings: Settings, weights: ForeignTensors) -> tuple[VitConfig, State]:
    """Map a VisionTransformer: any pool but the maximum, with a head or without.

    So CLIP's, SigLIP's, DINOv2's and DeiT III's encoders are read: with registers, LayerScale, a
    norm in front of the stack (and then no bias of the patches), attention pooling and SwiGLU.

    Behind a ResNetV2 with group norm and standardised filters (timm's `HybridEmbed`) it becomes a
    Hybrid. What the tensors say is checked against the settings; `num_groups` in them is of a
    hybrid's norms, and `wanted_size`, the user's image size, may explain a grid that is not square.
    """
    hybrid, state = _backbone(weights)
    clip = "norm_pre.weight" in weights
    kernel, taken = patches(
        weights,
        "patch_embed.proj",
        "patches.patches.project" if hybrid else "patches.project",
        bias=not clip,
    )
    state |= taken
    positions = weights.take("pos_embed")[0]
    has_token, after = "cls_token" in weights, "fc_norm.weight" in weights
    tokens = [weights.take(name) for name in ("cls_token", "reg_token") if name in weights]
    if tokens:
        state["pool.token"] = torch.cat(tokens, dim=1)
    extra = sum(each.shape[1] for each in tokens)
    if clip:
        state |= weights.module("norm_pre", "embedding_norm")
    depth, parts = _take_blocks(weights, state)
    state |= (
        weights.module("fc_norm", "pool_norm") if after else weights.module("norm", "encoder.norm")
    )
    pools = "attn_pool.latent" in weights
    if pools:
        state["pool.query"] = weights.take("attn_pool.latent")
        state |= packed(weights, ["attn_pool.q", "attn_pool.kv"], "pool.attention.qkv")
        state |= weights.modules("attn_pool", "pool", POOL)
    pool = pool_name(settings["global_pool"], has_token, after, pools)
    representation = None
    if "pre_logits.fc.weight" in weights:
        state |= weights.module("pre_logits.fc", "representation.0")
        representation = len(state["representation.0.bias"])
    if "head.weight" in weights:
        state |= weights.module("head", "head")
    stride = STEM_STRIDE * 2 ** max(len(hybrid["depths"]) - 1, 0) if hybrid else 1
    stated = settings["img_size"], settings.get("wanted_size")
    size = image_size(len(positions), extra, stride * kernel.shape[2], stated)
    shape = vit_shape(state, kernel, size, depth) | {
        "heads": settings["num_heads"],
        "pool": pool,
        "registers": extra - has_token,
        "pool_norm": "after" if after else "before",
        "representation": representation,
        "activation": ACTIVATION_NAMES[settings["act_layer"] or "gelu"],
        "embedding_norm": clip,
        "patch_bias": not clip,
        "norm_eps": settings["norm_eps"],
    }
    if "activation" in parts and settings["act_layer"] not in (None, "silu", "swish"):
        raise UsageError(
            f"This timm ViT has gates of act_layer {settings['act_layer']!r}; only 'silu' is "
            "supported."
        )
    if "layer_scale" in parts:
        parts["layer_scale"] = settings.get("init_values") or LAYER_SCALE
    config = (
        HybridConfig(**shape | parts | hybrid, norm_groups=settings["num_groups"])
        if hybrid
        else VitConfig(**shape | parts)
    )
    # With no_embed_class the tokens in front have no positions.
    state["positions.table"] = grid_positions(positions, config.grid, extra)
    return config, state


def _take_blocks(weights: ForeignTensors, state: State) -> tuple[int, dict[str, Any]]:
    """Take the blocks of a VisionTransformer, and count them; say which parts they have."""
    fc1, fc2 = weights.shape("blocks.0.mlp.fc1.weight"), weights.shape("blocks.0.mlp.fc2.weight")
    gated = bool(fc1) and fc1[:1] == tuple(2 * each for each in fc2[1:])  # gate and values in one
    modules = ATTENTION if gated else ATTENTION | MLP
    depth = encoder_blocks(weights, "blocks.", state, modules, ["attn.qkv"])
    parts: dict[str, Any] = {"activation": "swiglu"} if gated else {}
    for block in range(depth):
        theirs, ours = f"blocks.{block}", f"encoder.blocks.{block}"
        if gated:
            both = f"{theirs}.mlp.fc1", f"{theirs}.mlp.fc2"
            state |= swiglu(weights, *both, f"{ours}.feedforward")
        if f"{theirs}.ls1.gamma" in weights:
            parts["layer_scale"] = LAYER_SCALE
            state |= layer_scales(weights, theirs, ours, ("ls1.gamma", "ls2.gamma"))
    return depth, parts


def _backbone(weights: ForeignTensors) -> tuple[dict[str, Any], State]:
    """Take the ResNet, if there is one; return what HybridConfig says of it, and its state."""
    whole = f"{BACKBONE}.stem.conv.weight" in weights
    if not whole and f"{BACKBONE}.conv.weight" not in weights:
        return {}, {}
    stem = f"{BACKBONE}.stem" if whole else BACKBONE
    state = weights.convolution(f"{stem}.conv", "patches.stem.convolution")
    state |= weights.module(f"{stem}.norm", "patches.stem.norm")
    depths: list[int] = []
    for stage in range(weights.reach(BACKBONE + ".stages.{}.blocks.0.conv1.weight")):
        depths.append(weights.count(f"{BACKBONE}.stages.{stage}.blocks."))
        for block in range(depths[-1]):
            theirs = f"{BACKBONE}.stages.{stage}.blocks.{block}"
            ours = f"patches.stages.{stage}.{block}"
            pairs = [(f"conv{n}", f"norm{n}", part) for n, part in RESIDUAL.items()]
            if f"{theirs}.downsample.conv.weight" in weights:
                pairs.append(("downsample.conv", "downsample.norm", "shortcut"))
            for convolution, norm, part in pairs:
                state |= weights.convolution(
                    f"{theirs}.{convolution}", f"{ours}.{part}.convolution"
                )
                state |= weights.module(f"{theirs}.{norm}", f"{ours}.{part}.norm")
    width, channels = state["patches.stem.convolution.weight"].shape[:2]
    return {"depths": tuple(depths), "stem_width": width, "channels": channels}, state


def pool_name(name: str | None, has_class_token: bool, normed_after: bool, attends: bool) -> Pool:
    """Say how tokens become one vector; where nobody does, the norm's place and the token do."""
    if name is None:
        name = "token" if has_class_token and not normed_after else "avg"
    if name == "map" and attends and not has_class_token:
        return "map"
    if name == "token" and has_class_token and not attends:
        return "class"
    if name == "avg" and not attends:
        return "patch-mean" if has_class_token else "mean"
    raise UsageError(
        f"This timm model has global_pool {name!r} {'with' if has_class_token else 'without'} a "
        f"class token and {'with' if attends else 'without'} a learned query; Vit pools by class "
        "token ('token'), by mean ('avg') or by a learned query alone ('map')."
    )
