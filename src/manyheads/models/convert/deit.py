"""DeiT with a distillation token, of timm and Hugging Face -> our Deit.

A DeiT without the token is a plain ViT: see `timm.py` and `hf.py`.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from manyheads.models.convert import hf, timm
from manyheads.models.convert.foreign import ForeignTensors, grid_positions, height_and_width
from manyheads.models.convert.layers import refuse_strange
from manyheads.models.deit import DeitConfig
from manyheads.models.parts import Activation


def from_timm(
    settings: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[DeitConfig, dict[str, Tensor]]:
    """Map a VisionTransformerDistilled; dropout is a matter of training and stays 0.

    Args:
        settings: its arguments, where they differ from the defaults.
        tensors: its state dict.

    Returns:
        The Config of our Deit, and its state dict.

    Raises:
        UsageError: the model has something that ours has not, or lacks something.
    """
    settings = timm.DEFAULTS | dict(settings)
    refuse_strange(settings, timm.PARTS, "timm")
    given = ForeignTensors(tensors, "timm DeiT")
    kernel = given.take("patch_embed.proj.weight")
    state = {
        "patches.project.weight": kernel.flatten(1),
        "patches.project.bias": given.take("patch_embed.proj.bias"),
        "pool.token": torch.cat((given.take("cls_token"), given.take("dist_token")), dim=1),
    }
    positions = given.take("pos_embed")[0]
    taken, depth = timm.blocks(given)
    state |= taken
    state |= given.module("norm", "encoder.norm")
    state |= given.module("head", "head")
    state |= given.module("head_dist", "teacher_head")
    given.finish()
    return _fit(
        state,
        kernel,
        positions,
        size=settings["img_size"],
        depth=depth,
        heads=settings["num_heads"],
    )


def from_hf(
    settings: Mapping[str, Any] | object, tensors: Mapping[str, Tensor]
) -> tuple[DeitConfig, dict[str, Tensor]]:
    """Map a DeiTForImageClassificationWithTeacher, by the names of its stored files.

    Args:
        settings: the content of config.json, or a DeiTConfig.
        tensors: the content of model.safetensors.

    Returns:
        The Config of our Deit, and its state dict.

    Raises:
        UsageError: the model has something that ours has not, or lacks something.
    """
    settings = hf.DEFAULTS | dict(settings if isinstance(settings, Mapping) else vars(settings))
    activation = hf.read_activation(settings)
    given = ForeignTensors(tensors, "Hugging Face DeiT")
    embeddings, layers = "deit.embeddings", "deit.encoder.layer."
    kernel = given.take(f"{embeddings}.patch_embeddings.projection.weight")
    tokens = [given.take(f"{embeddings}.{name}_token") for name in ("cls", "distillation")]
    state = {
        "patches.project.weight": kernel.flatten(1),
        "patches.project.bias": given.take(f"{embeddings}.patch_embeddings.projection.bias"),
        "pool.token": torch.cat(tokens, dim=1),
    }
    positions = given.take(f"{embeddings}.position_embeddings")[0]
    taken, depth = hf.blocks(given, layers)
    state |= taken
    state |= given.module("deit.layernorm", "encoder.norm")
    state |= given.module("cls_classifier", "head")
    state |= given.module("distillation_classifier", "teacher_head")
    given.finish()
    return _fit(
        state,
        kernel,
        positions,
        size=settings["image_size"],
        depth=depth,
        heads=settings["num_attention_heads"],
        activation=activation,
        norm_eps=settings["layer_norm_eps"],
    )


def _fit(
    state: dict[str, Tensor],
    kernel: Tensor,
    positions: Tensor,
    *,
    size: Any,
    depth: int,
    heads: int,
    activation: Activation = "gelu",
    norm_eps: float = 1e-6,
) -> tuple[DeitConfig, dict[str, Tensor]]:
    height, width = height_and_width(size)
    config = DeitConfig(
        height=height,
        width=width,
        channels=kernel.shape[1],
        patch=kernel.shape[2],
        dim=kernel.shape[0],
        layers=depth,
        heads=heads,
        hidden=len(state["encoder.blocks.0.feedforward.expand.bias"]),
        classes=len(state["head.bias"]),
        activation=activation,
        norm_eps=norm_eps,
    )
    # With no_embed_class the extra tokens have no positions.
    state["positions.table"] = grid_positions(positions, config.grid, extra=2)
    return config, state
