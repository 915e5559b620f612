"""Swin Transformers of timm, Hugging Face and torchvision -> our Swin.

The three agree on the arithmetic, but not on what happens at the edge of a grid that windows do not
fill: see `EDGES` in models/swin.py.
"""

from typing import Any

from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert.converter import keys, name_map
from manyheads.models.convert.foreign import ForeignTensors, Settings, State, Tensors
from manyheads.models.convert.layers import height_and_width, height_width, packed, patches, single
from manyheads.models.swin import SwinConfig

Result = tuple[SwinConfig, State]


@keys("timm swin").reader
def from_timm(settings: Settings, given: ForeignTensors) -> Result:
    """Map a SwinTransformer of timm."""
    return _read(given, name_map("timm swin"), settings, settings["img_size"])


@keys("torchvision swin").reader
def from_torchvision(settings: Settings, given: ForeignTensors) -> Result:
    """Map a SwinTransformer of torchvision (not of its version 2), with its `image_size`."""
    return _read(given, name_map("torchvision swin"), settings, settings["image_size"])


@keys("hf swin").reader
def from_hf(settings: Settings, given: ForeignTensors) -> Result:
    """Map a SwinForImageClassification of Hugging Face."""
    return _read(given, name_map("hf swin"), settings, settings["image_size"])


def _read(given: ForeignTensors, names: dict[str, Any], settings: Settings, size: Any) -> Result:
    kernel, state = patches(given, names["patches"])
    state |= given.module(names["patch_norm"], "norm_patches")
    layers = []
    for stage in range(-(-given.count(names["stages"]) // names["parts"])):
        numbers = {"stage": stage, "before": stage - 1, "even": 2 * stage, "odd": 2 * stage + 1}
        blocks, ours = names["blocks"].format(**numbers), f"stages.{stage}"
        if stage:
            merge = names["merge"].format(**numbers)
            state |= given.module(f"{merge}.norm", f"{ours}.merge.norm")
            state |= given.convolution(f"{merge}.reduction", f"{ours}.merge.project")
        layers.append(given.count(f"{blocks}."))
        for layer in range(layers[-1]):
            theirs, mine = f"{blocks}.{layer}", f"{ours}.blocks.{layer}"
            state |= given.modules(theirs, mine, names["block"])
            attention = f"{theirs}.{names['attention']}"
            qkv = [f"{attention}.{part}" for part in names["qkv"]]
            state |= packed(given, qkv, f"{mine}.attention.attention.qkv")
            table = given.take(f"{attention}.relative_position_bias_table")
            state[f"{mine}.attention.bias.table"] = table
    state |= given.module(names["norm"], "norm")
    state |= given.module(names["head"], "head")
    return _config(state, kernel, layers, settings, size, names["edges"]), state


def _config(
    state: Tensors,
    kernel: Tensor,
    layers: list[int],
    settings: Settings,
    size: Any,
    edges: Any,
) -> SwinConfig:
    window = settings["window_size"]
    if isinstance(window, list | tuple) and len(window) != 2:
        window = single(window, "window_size")
    config = SwinConfig(
        **height_width(size),
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
