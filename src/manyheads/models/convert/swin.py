"""Swin Transformers of timm, Hugging Face and torchvision -> our Swin.

The three agree on the arithmetic, but not on what happens at the edge of a grid that windows do not
fill: see `EDGES` in models/swin.py.
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert.foreign import ForeignTensors, height_and_width
from manyheads.models.convert.layers import learned, packed, refuse_strange, single
from manyheads.models.swin import EdgesName, SwinConfig

TIMM: dict[str, Any] = {
    "img_size": 224,
    "num_heads": (3, 6, 12, 24),
    "window_size": 7,
    "global_pool": "avg",
}
TIMM_PARTS = ("always_partition", "embed_layer", "head_dim", "norm_layer")
TIMM_BLOCK = {
    "norm1": "around_attention.norm",
    "attn.proj": "attention.attention.out",
    "norm2": "around_feedforward.norm",
    "mlp.fc1": "feedforward.expand",
    "mlp.fc2": "feedforward.contract",
}
TORCHVISION: dict[str, Any] = {"num_heads": (3, 6, 12, 24), "window_size": (7, 7)}
TORCHVISION_BLOCK = TIMM_BLOCK | {}
del TORCHVISION_BLOCK["mlp.fc1"], TORCHVISION_BLOCK["mlp.fc2"]
TORCHVISION_BLOCK |= {"mlp.0": "feedforward.expand", "mlp.3": "feedforward.contract"}
HF: dict[str, Any] = {
    "image_size": 224,
    "num_heads": (3, 6, 12, 24),
    "window_size": 7,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-5,
}
HF_BLOCK = {
    "layernorm_before": "around_attention.norm",
    "attention.output.dense": "attention.attention.out",
    "layernorm_after": "around_feedforward.norm",
    "intermediate.dense": "feedforward.expand",
    "output.dense": "feedforward.contract",
}
Result = tuple[SwinConfig, dict[str, Tensor]]


def from_timm(settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Result:
    """Map a SwinTransformer of timm; dropout is a matter of training and stays 0.

    Args:
        settings: its arguments, where they differ from the defaults.
        tensors: its state dict.

    Returns:
        The Config of our Swin, and its state dict.

    Raises:
        UsageError: the model has something that ours has not, or lacks something.
    """
    settings = TIMM | dict(settings)
    refuse_strange(settings, TIMM_PARTS, "timm")
    if settings["global_pool"] != "avg":
        raise UsageError(
            f"This timm model has global_pool {settings['global_pool']!r}; ours averages ('avg')."
        )
    given = ForeignTensors(learned(tensors), "timm Swin")
    kernel, state = _patches(given, "patch_embed.proj", "patch_embed.norm")
    layers = []
    for stage in range(given.count("layers.")):
        theirs = f"layers.{stage}"
        if stage:
            state |= _merge(given, f"{theirs}.downsample", stage)
        layers.append(given.count(f"{theirs}.blocks."))
        for layer in range(layers[-1]):
            block, ours = f"{theirs}.blocks.{layer}", f"stages.{stage}.blocks.{layer}"
            state |= _block(given, block, ours, TIMM_BLOCK)
    state |= given.module("norm", "norm")
    state |= given.module("head.fc", "head")
    given.finish()
    return _config(state, kernel, layers, settings, settings["img_size"], "timm"), state


def from_torchvision(settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Result:
    """Map a SwinTransformer of torchvision (not of its version 2).

    Args:
        settings: its arguments, and `image_size`, 224 if it is not there: torchvision's model does
            not know it.
        tensors: its state dict.

    Returns:
        The Config of our Swin, and its state dict.

    Raises:
        UsageError: the model has something that ours has not, or lacks something.
    """
    settings = TORCHVISION | dict(settings)
    refuse_strange(settings, ("block", "norm_layer", "downsample_layer"), "torchvision")
    given = ForeignTensors(learned(tensors), "torchvision Swin")
    kernel, state = _patches(given, "features.0.0", "features.0.2")
    layers = []
    parts = given.count("features.")  # blocks and mergings take turns behind the patches
    for stage in range((parts + 1) // 2):
        theirs = f"features.{2 * stage + 1}"
        if stage:
            state |= _merge(given, f"features.{2 * stage}", stage)
        layers.append(given.count(f"{theirs}."))
        for layer in range(layers[-1]):
            block, ours = f"{theirs}.{layer}", f"stages.{stage}.blocks.{layer}"
            state |= _block(given, block, ours, TORCHVISION_BLOCK)
    state |= given.module("norm", "norm")
    state |= given.module("head", "head")
    given.finish()
    size = settings.get("image_size", 224)
    return _config(state, kernel, layers, settings, size, "torchvision"), state


def from_hf(settings: Mapping[str, Any] | object, tensors: Mapping[str, Tensor]) -> Result:
    """Map a SwinForImageClassification of Hugging Face, by the names of its stored files.

    Args:
        settings: the content of config.json, or a SwinConfig.
        tensors: the content of model.safetensors.

    Returns:
        The Config of our Swin, and its state dict.

    Raises:
        UsageError: the model has something that ours has not, or lacks something.
    """
    settings = HF | dict(settings if isinstance(settings, Mapping) else vars(settings))
    refuse_strange(settings, ("use_absolute_embeddings",), "Hugging Face")
    for name in ("hidden_act", "layer_norm_eps"):
        if settings[name] != HF[name]:
            raise UsageError(
                f"This Hugging Face model has {name} {settings[name]!r}; our Swin only knows "
                f"{HF[name]!r}."
            )
    given = ForeignTensors(learned(tensors), "Hugging Face Swin")
    kernel, state = _patches(
        given, "swin.embeddings.patch_embeddings.projection", "swin.embeddings.norm"
    )
    layers = []
    for stage in range(given.count("swin.encoder.layers.")):
        theirs = f"swin.encoder.layers.{stage}"
        if stage:
            state |= _merge(given, f"swin.encoder.layers.{stage - 1}.downsample", stage)
        layers.append(given.count(f"{theirs}.blocks."))
        for layer in range(layers[-1]):
            block, ours = f"{theirs}.blocks.{layer}", f"stages.{stage}.blocks.{layer}"
            for name, our_name in HF_BLOCK.items():
                state |= given.module(f"{block}.{name}", f"{ours}.{our_name}")
            own = f"{block}.attention.self"
            qkv = [f"{own}.{part}" for part in ("query", "key", "value")]
            state |= packed(given, qkv, f"{ours}.attention.attention.qkv")
            state[f"{ours}.attention.bias.table"] = given.take(
                f"{own}.relative_position_bias_table"
            )
    state |= given.module("swin.layernorm", "norm")
    state |= given.module("classifier", "head")
    given.finish()
    return _config(state, kernel, layers, settings, settings["image_size"], "transformers"), state


def _patches(given: ForeignTensors, project: str, norm: str) -> tuple[Tensor, dict[str, Tensor]]:
    kernel = given.take(f"{project}.weight")
    state = {
        "patches.project.weight": kernel.flatten(1),
        "patches.project.bias": given.take(f"{project}.bias"),
    }
    return kernel, state | given.module(norm, "norm_patches")


def _block(
    given: ForeignTensors, block: str, ours: str, names: Mapping[str, str]
) -> dict[str, Tensor]:
    """Take a block of timm's or torchvision's, which name its attention alike."""
    state: dict[str, Tensor] = {}
    for name, our_name in names.items():
        state |= given.module(f"{block}.{name}", f"{ours}.{our_name}")
    state |= packed(given, [f"{block}.attn.qkv"], f"{ours}.attention.attention.qkv")
    table = given.take(f"{block}.attn.relative_position_bias_table")
    return state | {f"{ours}.attention.bias.table": table}


def _merge(given: ForeignTensors, theirs: str, stage: int) -> dict[str, Tensor]:
    state = given.module(f"{theirs}.norm", f"stages.{stage}.merge.norm")
    state[f"stages.{stage}.merge.project.weight"] = given.take(f"{theirs}.reduction.weight")
    return state


def _config(
    state: Mapping[str, Tensor],
    kernel: Tensor,
    layers: list[int],
    settings: Mapping[str, Any],
    size: Any,
    edges: EdgesName,
) -> SwinConfig:
    height, width = height_and_width(size)
    window = settings["window_size"]
    if isinstance(window, list | tuple) and len(window) != 2:
        window = single(window, "window_size")
    config = SwinConfig(
        height=height,
        width=width,
        channels=kernel.shape[1],
        patch=kernel.shape[2],
        dim=kernel.shape[0],
        layers=tuple(layers),
        heads=tuple(settings["num_heads"]),
        window=height_and_width(window),
        expansion=len(state["stages.0.blocks.0.feedforward.expand.bias"]) / kernel.shape[0],
        classes=len(state["head.bias"]),
        edges=edges,
    )
    for stage, (rows, columns) in enumerate(config.windows):
        found = len(state[f"stages.{stage}.blocks.0.attention.bias.table"])
        if found != (2 * rows - 1) * (2 * columns - 1):
            raise UsageError(
                f"Stage {stage + 1} of the model has a bias for {found} distances, but windows of "
                f"{rows} x {columns} have {(2 * rows - 1) * (2 * columns - 1)}: check that its "
                "image size and window size are stated."
            )
    return config
