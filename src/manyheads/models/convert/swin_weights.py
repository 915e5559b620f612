"""Swin Transformers of timm, Hugging Face and torchvision -> our Swin.

The three agree on the arithmetic, but not on what happens at the edge of a grid that windows do not
fill: see `EDGES` in models/swin.py.
"""

from manyheads.errors import UsageError
from manyheads.models.convert.converter import Made, Names, converter
from manyheads.models.convert.foreign import ForeignTensors, Settings
from manyheads.models.convert.layers import height_and_width, height_width, packed, patches, single
from manyheads.models.swin import SwinConfig


def _read(settings: Settings, weights: ForeignTensors, names: Names) -> Made[SwinConfig]:
    """Map a Swin of timm, of Hugging Face or of torchvision (not its version 2)."""
    kernel, state = patches(weights, names["patches"])
    state |= weights.module(names["patch_norm"], "norm_patches")
    layers = []
    for stage in range(-(-weights.count(names["stages"]) // names["parts"])):
        numbers = {"stage": stage, "before": stage - 1, "even": 2 * stage, "odd": 2 * stage + 1}
        blocks, ours = names["blocks"].format(**numbers), f"stages.{stage}"
        if stage:
            merge = names["merge"].format(**numbers)
            state |= weights.module(f"{merge}.norm", f"{ours}.merge.norm")
            state |= weights.convolution(f"{merge}.reduction", f"{ours}.merge.project")
        layers.append(weights.count(f"{blocks}."))
        for layer in range(layers[-1]):
            theirs, mine = f"{blocks}.{layer}", f"{ours}.blocks.{layer}"
            state |= weights.modules(theirs, mine, names["block"])
            attention = f"{theirs}.{names['attention']}"
            qkv = [f"{attention}.{part}" for part in names["qkv"]]
            state |= packed(weights, qkv, f"{mine}.attention.attention.qkv")
            table = weights.take(f"{attention}.relative_position_bias_table")
            state[f"{mine}.attention.bias.table"] = table
    state |= weights.module(names["norm"], "norm")
    state |= weights.module(names["head"], "head")
    window = settings["window_size"]
    if isinstance(window, list | tuple) and len(window) != 2:
        window = single(window, "window_size")
    config = SwinConfig(
        **height_width(settings[names["size"]]),
        channels=kernel.shape[1],
        patch=kernel.shape[2],
        dim=kernel.shape[0],
        layers=tuple(layers),
        heads=tuple(settings["num_heads"]),
        window=height_and_width(window),
        expansion=len(state["stages.0.blocks.0.feedforward.expand.bias"]) / kernel.shape[0],
        classes=len(state["head.bias"]),
        edges=names["edges"],
    )
    for stage, (rows, columns) in enumerate(config.windows):
        found = len(state[f"stages.{stage}.blocks.0.attention.bias.table"])
        if found != (2 * rows - 1) * (2 * columns - 1):
            raise UsageError(
                f"Stage {stage + 1} of the model has a bias for {found} distances, but windows of "
                f"{rows} x {columns} have {(2 * rows - 1) * (2 * columns - 1)}: check that its "
                "image size and window size are stated."
            )
    return config, state


from_timm = converter("timm swin", _read)
from_torchvision = converter("torchvision swin", _read)
from_hf = converter("hf swin", _read)
