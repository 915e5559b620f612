"""timm's VisionTransformer -> our Vit, or Hybrid where its tokens come from a ResNet."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert.foreign import (
    ForeignTensors,
    check_settings,
    grid_positions,
    image_size,
)
from manyheads.models.convert.layers import packed
from manyheads.models.hybrid import STEM_STRIDE, HybridConfig
from manyheads.models.vit import Pool, VitConfig

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


def blocks(given: ForeignTensors) -> tuple[dict[str, Tensor], int]:
    """Take the blocks of a VisionTransformer, and count them."""
    state: dict[str, Tensor] = {}
    depth = given.count("blocks.")
    for block in range(depth):
        for theirs, ours in BLOCK.items():
            state |= given.module(f"blocks.{block}.{theirs}", f"encoder.blocks.{block}.{ours}")
        state |= packed(
            given, [f"blocks.{block}.attn.qkv"], f"encoder.blocks.{block}.attention.qkv"
        )
    return state, depth


def vit(
    arguments: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[VitConfig, dict[str, Tensor]]:
    """Map a VisionTransformer that pools by class token or by mean, normed before or after.

    Behind a ResNetV2 with group norm and standardised filters (timm's `HybridEmbed`) it becomes a
    Hybrid. Dropout is a matter of training and stays 0.

    Args:
        arguments: of VisionTransformer, where they differ from its defaults. What the tensors say
            is checked against them. `num_groups`: of a hybrid's norms; `wanted_size`: what the
            user asks for, which may be what a grid that is not square was made for.
        tensors: its state dict.

    Returns:
        The Config of our Vit or Hybrid, and its state dict.

    Raises:
        UsageError: the model has something that ours has not, or lacks something.
    """
    settings = DEFAULTS | dict(arguments)
    strange = [part for part in PARTS if settings.get(part) is not None]
    if strange:
        raise UsageError(
            f"This timm model is built with its own {', '.join(strange)}; only a "
            "VisionTransformer of timm's default parts (GELU, LayerNorm) can be converted."
        )
    given = ForeignTensors(tensors, "timm ViT")
    state: dict[str, Tensor] = {}
    depths, stem, channels = _backbone(given, state)
    prefix = "patches" if depths is None else "patches.patches"
    kernel = given.take("patch_embed.proj.weight")
    positions = given.take("pos_embed")[0]
    state[f"{prefix}.project.weight"] = kernel.flatten(1)
    state[f"{prefix}.project.bias"] = given.take("patch_embed.proj.bias")
    has_token, after = "cls_token" in given, "fc_norm.weight" in given
    pool = _pool(settings.get("global_pool"), has_token, after)
    if has_token:
        state["pool.token"] = given.take("cls_token")
    taken, depth = blocks(given)
    state |= taken
    state |= given.module("fc_norm", "pool_norm") if after else given.module("norm", "encoder.norm")
    if "pre_logits.fc.weight" in given:
        state |= given.module("pre_logits.fc", "representation.0")
    state |= given.module("head", "head")
    given.finish()
    dim, patch = kernel.shape[0], kernel.shape[2]
    check_settings(settings, {"embed_dim": dim, "depth": depth, "patch_size": patch})
    stride = 1 if depths is None else STEM_STRIDE * 2 ** max(len(depths) - 1, 0)
    height, width = image_size(
        len(positions),
        1 if has_token else 0,
        stride * patch,
        (settings["img_size"], settings.get("wanted_size")),
    )
    representation = state.get("representation.0.bias")
    shape: dict[str, Any] = {
        "height": height,
        "width": width,
        "channels": channels if channels is not None else kernel.shape[1],
        "patch": patch,
        "dim": dim,
        "layers": depth,
        "heads": settings["num_heads"],
        "hidden": len(state["encoder.blocks.0.feedforward.expand.bias"]),
        "classes": len(state["head.bias"]),
        "pool": pool,
        "pool_norm": "after" if after else "before",
        "representation": None if representation is None else len(representation),
    }
    config = (
        VitConfig(**shape)
        if depths is None
        else HybridConfig(
            **shape, depths=depths, stem_width=stem, norm_groups=settings["num_groups"]
        )
    )
    # With no_embed_class the class token has no position.
    state["positions.table"] = grid_positions(positions, config.grid, 1 if has_token else 0)
    return config, state


def _backbone(
    given: ForeignTensors, state: dict[str, Tensor]
) -> tuple[tuple[int, ...] | None, int, int | None]:
    """Take the ResNet, if there is one: blocks a stage, width of the stem, channels of images."""
    whole = f"{BACKBONE}.stem.conv.weight" in given
    if not whole and f"{BACKBONE}.conv.weight" not in given:
        return None, 0, None
    stem = f"{BACKBONE}.stem" if whole else BACKBONE
    kernel = given.take(f"{stem}.conv.weight")
    state["patches.stem.convolution.weight"] = kernel
    state |= given.module(f"{stem}.norm", "patches.stem.norm")
    depths: list[int] = []
    while f"{BACKBONE}.stages.{len(depths)}.blocks.0.conv1.weight" in given:
        stage = len(depths)
        depths.append(given.count(f"{BACKBONE}.stages.{stage}.blocks."))
        for block in range(depths[-1]):
            theirs = f"{BACKBONE}.stages.{stage}.blocks.{block}"
            ours = f"patches.stages.{stage}.{block}"
            for number, part in RESIDUAL.items():
                state |= given.convolution(f"{theirs}.conv{number}", f"{ours}.{part}.convolution")
                state |= given.module(f"{theirs}.norm{number}", f"{ours}.{part}.norm")
            if f"{theirs}.downsample.conv.weight" in given:
                shortcut = f"{ours}.shortcut"
                state |= given.convolution(f"{theirs}.downsample.conv", f"{shortcut}.convolution")
                state |= given.module(f"{theirs}.downsample.norm", f"{shortcut}.norm")
    return tuple(depths), len(kernel), kernel.shape[1]


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
        "class token; ours pools by class token ('token') or by mean ('avg')."
    )
