"""timm's VisionTransformer -> our Vit."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert.foreign import ForeignTensors, grid_positions, height_and_width
from manyheads.models.vit import Pool, VitConfig

DEFAULTS: dict[str, Any] = {"img_size": 224, "global_pool": "token", "num_heads": 12}
# Modules of a block, theirs and ours; queries, keys and values may come without a bias.
BLOCK = {
    "norm1": "around_attention.norm",
    "attn.proj": "attention.out",
    "norm2": "around_feedforward.norm",
    "mlp.fc1": "feedforward.expand",
    "mlp.fc2": "feedforward.contract",
}
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


def vit(
    arguments: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[VitConfig, dict[str, Tensor]]:
    """Map a VisionTransformer that pools by class token, or by mean without one.

    timm's own mean pooling normalises after the mean; only `fc_norm=False` does as we do, before.
    Dropout is a matter of training and stays 0.

    Args:
        arguments: of VisionTransformer, where they differ from its defaults.
        tensors: its state dict.

    Returns:
        The Config of our Vit, and its state dict.

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
    kernel = given.take("patch_embed.proj.weight")
    positions = given.take("pos_embed")[0]
    state = {
        "patches.project.weight": kernel.flatten(1),
        "patches.project.bias": given.take("patch_embed.proj.bias"),
    }
    pool = _pool(settings["global_pool"], "cls_token" in given)
    if pool == "class":
        state["pool.token"] = given.take("cls_token")
    depth = given.count("blocks.")
    for block in range(depth):
        for theirs, ours in BLOCK.items():
            state |= given.module(f"blocks.{block}.{theirs}", f"encoder.blocks.{block}.{ours}")
        qkv = f"blocks.{block}.attn.qkv"
        weight = given.take(f"{qkv}.weight")
        has_bias = f"{qkv}.bias" in given
        bias = given.take(f"{qkv}.bias") if has_bias else weight.new_zeros(len(weight))
        state[f"encoder.blocks.{block}.attention.qkv.weight"] = weight
        state[f"encoder.blocks.{block}.attention.qkv.bias"] = bias
    state |= given.module("norm", "encoder.norm")
    state |= given.module("head", "head")
    given.finish()
    height, width = height_and_width(settings["img_size"])
    config = VitConfig(
        height=height,
        width=width,
        channels=kernel.shape[1],
        patch=kernel.shape[2],
        dim=kernel.shape[0],
        layers=depth,
        heads=settings["num_heads"],
        hidden=len(state["encoder.blocks.0.feedforward.expand.bias"]),
        classes=len(state["head.bias"]),
        pool=pool,
    )
    # With no_embed_class the class token has no position.
    extra = 1 if pool == "class" else 0
    state["positions.table"] = grid_positions(positions, config.grid, extra)
    return config, state


def _pool(name: str, has_class_token: bool) -> Pool:
    if name == "token" and has_class_token:
        return "class"
    if name == "avg" and not has_class_token:
        return "mean"
    raise UsageError(
        f"This timm model has global_pool {name!r} {'with' if has_class_token else 'without'} a "
        "class token; ours pools by class token ('token'), or by mean without one ('avg')."
    )
