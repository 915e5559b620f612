"""timm's VisionTransformer -> our Vit, our Deit, or Hybrid where a ResNet makes the tokens."""

from typing import Any

import torch

from manyheads.errors import UsageError
from manyheads.models.convert.foreign import ForeignTensors, Settings, State, Tensors
from manyheads.models.convert.layers import (
    check_settings,
    completed,
    grid_positions,
    image_size,
    packed,
    patches,
    refuse_strange,
    vit_shape,
)
from manyheads.models.deit import DeitConfig
from manyheads.models.hybrid import STEM_STRIDE, HybridConfig
from manyheads.models.image_encoder import Pool
from manyheads.models.vit import VitConfig

DEFAULTS: dict[str, Any] = {"img_size": 224, "num_heads": 12, "num_groups": 32}
# Modules of a block, theirs and ours; queries, keys and values may come without a bias.
BLOCK = {
    "norm1": "around_attention.norm",
    "attn.proj": "attention.out",
    "norm2": "around_feedforward.norm",
    "mlp.fc1": "feedforward.expand",
    "mlp.fc2": "feedforward.contract",
}
# Convolutions of a residual block with the norms behind them, theirs and ours.
RESIDUAL = {"1": "reduce", "2": "mix", "3": "expand"}
# Arguments that change what a model computes without leaving a trace in its tensors.
PARTS = (
    "act_layer",
    "attn_layer",
    "block_fn",
    "embed_layer",
    "embed_norm_layer",
    "mlp_layer",
    "norm_layer",
)
BACKBONE = "patch_embed.backbone"


def deit(settings: Settings, tensors: Tensors) -> tuple[DeitConfig, State]:
    """Map a VisionTransformerDistilled; without the distillation token it is a plain ViT."""
    settings = completed(settings, DEFAULTS)
    refuse_strange(settings, PARTS, "timm")
    given = ForeignTensors(tensors, "timm DeiT")
    kernel, state = patches(given, "patch_embed.proj")
    state["pool.token"] = torch.cat((given.take("cls_token"), given.take("dist_token")), dim=1)
    positions = given.take("pos_embed")[0]
    depth = _take_blocks(given, state)
    for theirs, ours in {
        "norm": "encoder.norm",
        "head": "head",
        "head_dist": "teacher_head",
    }.items():
        state |= given.module(theirs, ours)
    given.finish()
    shape = vit_shape(state, kernel, settings["img_size"], depth)
    config = DeitConfig(**shape, heads=settings["num_heads"])
    state["positions.table"] = grid_positions(positions, config.grid, extra=2)
    return config, state


def vit(settings: Settings, tensors: Tensors) -> tuple[VitConfig, State]:
    """Map a VisionTransformer that pools by class token or by mean, normed before or after.

    Behind a ResNetV2 with group norm and standardised filters (timm's `HybridEmbed`) it becomes a
    Hybrid. What the tensors say is checked against the settings; `num_groups` in them is of a
    hybrid's norms, and `wanted_size`, the user's image size, may explain a grid that is not square.
    """
    settings = completed(settings, DEFAULTS)
    refuse_strange(settings, PARTS, "timm")
    given = ForeignTensors(tensors, "timm ViT")
    hybrid, state = _backbone(given)
    kernel, taken = patches(
        given, "patch_embed.proj", "patches.patches.project" if hybrid else "patches.project"
    )
    state |= taken
    positions = given.take("pos_embed")[0]
    has_token, after = "cls_token" in given, "fc_norm.weight" in given
    pool = _pool(settings.get("global_pool"), has_token, after)
    if has_token:
        state["pool.token"] = given.take("cls_token")
    depth = _take_blocks(given, state)
    state |= given.module("fc_norm", "pool_norm") if after else given.module("norm", "encoder.norm")
    representation = None
    if "pre_logits.fc.weight" in given:
        state |= given.module("pre_logits.fc", "representation.0")
        representation = len(state["representation.0.bias"])
    state |= given.module("head", "head")
    given.finish()
    dim, patch = kernel.shape[0], kernel.shape[2]
    check_settings(settings, {"embed_dim": dim, "depth": depth, "patch_size": patch})
    stride = STEM_STRIDE * 2 ** max(len(hybrid["depths"]) - 1, 0) if hybrid else 1
    stated = settings["img_size"], settings.get("wanted_size")
    size = image_size(len(positions), int(has_token), stride * patch, stated)
    shape = vit_shape(state, kernel, size, depth) | {
        "heads": settings["num_heads"],
        "pool": pool,
        "pool_norm": "after" if after else "before",
        "representation": representation,
    }
    config = (
        HybridConfig(**shape | hybrid, norm_groups=settings["num_groups"])
        if hybrid
        else VitConfig(**shape)
    )
    # With no_embed_class the class token has no position.
    state["positions.table"] = grid_positions(positions, config.grid, int(has_token))
    return config, state


def _take_blocks(given: ForeignTensors, state: State) -> int:
    """Take the blocks of a VisionTransformer, and count them."""
    depth = given.count("blocks.")
    for block in range(depth):
        theirs, ours = f"blocks.{block}", f"encoder.blocks.{block}"
        state |= given.modules(theirs, ours, BLOCK)
        state |= packed(given, [f"{theirs}.attn.qkv"], f"{ours}.attention.qkv")
    return depth


def _backbone(given: ForeignTensors) -> tuple[dict[str, Any], State]:
    """Take the ResNet, if there is one; return what HybridConfig says of it, and its state."""
    whole = f"{BACKBONE}.stem.conv.weight" in given
    if not whole and f"{BACKBONE}.conv.weight" not in given:
        return {}, {}
    stem = f"{BACKBONE}.stem" if whole else BACKBONE
    state = given.convolution(f"{stem}.conv", "patches.stem.convolution")
    state |= given.module(f"{stem}.norm", "patches.stem.norm")
    depths: list[int] = []
    for stage in range(given.reach(BACKBONE + ".stages.{}.blocks.0.conv1.weight")):
        depths.append(given.count(f"{BACKBONE}.stages.{stage}.blocks."))
        for block in range(depths[-1]):
            theirs = f"{BACKBONE}.stages.{stage}.blocks.{block}"
            ours = f"patches.stages.{stage}.{block}"
            pairs = [(f"conv{n}", f"norm{n}", part) for n, part in RESIDUAL.items()]
            if f"{theirs}.downsample.conv.weight" in given:
                pairs.append(("downsample.conv", "downsample.norm", "shortcut"))
            for convolution, norm, part in pairs:
                state |= given.convolution(f"{theirs}.{convolution}", f"{ours}.{part}.convolution")
                state |= given.module(f"{theirs}.{norm}", f"{ours}.{part}.norm")
    width, channels = state["patches.stem.convolution.weight"].shape[:2]
    return {"depths": tuple(depths), "stem_width": width, "channels": channels}, state


def _pool(name: str | None, has_class_token: bool, normed_after: bool) -> Pool:
    """Say how tokens become one vector; where nobody does, the norm's place and the token do."""
    if name is None:
        name = "token" if has_class_token and not normed_after else "avg"
    if name == "token" and has_class_token:
        return "class"
    if name == "avg":
        return "patch-mean" if has_class_token else "mean"
    raise UsageError(
        f"This timm model has global_pool {name!r} {'with' if has_class_token else 'without'} a "
        "class token; Vit pools by class token ('token') or by mean ('avg')."
    )
