"""ResNets of torchvision, timm and Hugging Face -> our ResNet.

Wide ones and ResNeXt are the same model with other numbers, which their tensors tell.
"""

from manyheads.errors import UsageError
from manyheads.models.convert.converter import Made, Names, converter
from manyheads.models.convert.foreign import ForeignTensors, Settings, State
from manyheads.models.convert.layers import height_width
from manyheads.models.resnet import ResNetConfig

PARTS = {2: ("first", "second"), 3: ("reduce", "mix", "expand")}  # by the number of convolutions


def _read(settings: Settings, weights: ForeignTensors, names: Names) -> Made[ResNetConfig]:
    """Map a ResNet of torchvision, of timm with the same parts, or of Hugging Face."""
    convolution, norm = names["stem"]
    state = weights.convolution(convolution, "stem.convolution.convolution")
    state |= weights.batch_norm(norm, "stem.convolution.norm")
    stem = state["stem.convolution.convolution.weight"]
    if stem.shape[2] != 7:  # a stem of somebody's own: nobody can tell its stride, or its pool
        raise UsageError(
            f"This ResNet begins with a convolution of {stem.shape[2]} x {stem.shape[3]}; theirs "
            "have 7 x 7. What follows it does not show in the tensors."
        )
    depths: list[int] = []
    while True:
        index = 0
        while _block(weights, names, state, len(depths), index):
            index += 1
        if not index:
            break
        depths.append(index)
    state |= weights.module(names["head"], "head")
    if not depths:
        raise UsageError("This model has no residual blocks: it is not a ResNet.")
    basic = "stages.0.0.first.convolution.weight" in state
    inner, outer = ("first", "second") if basic else ("mix", "expand")
    firsts = [f"stages.{stage}.0." for stage in range(len(depths))]
    mixing = state[f"stages.0.0.{inner}.convolution.weight"]
    config = ResNetConfig(
        **height_width(settings["img_size"]),
        channels=stem.shape[1],
        stem_width=len(stem),
        block="basic" if basic else "bottleneck",
        depths=tuple(depths),
        widths=tuple(len(state[f"{each}{inner}.convolution.weight"]) for each in firsts),
        outputs=tuple(len(state[f"{each}{outer}.convolution.weight"]) for each in firsts),
        groups=1 if basic else len(mixing) // mixing.shape[1],
        classes=len(state["head.bias"]),
    )
    return config, state


def _block(weights: ForeignTensors, names: Names, state: State, stage: int, index: int) -> bool:
    """Take a block's tensors; say whether there is such a block."""
    first = names["first"]
    theirs = names["block"].format(stage=stage + first, index=index)
    layers = [[name.format(number=first + n) for name in names["layer"]] for n in range(3)]
    pairs = [pair for pair in layers if f"{theirs}.{pair[0]}.weight" in weights]
    if len(pairs) not in PARTS:
        return False
    parts = [*PARTS[len(pairs)]]
    if f"{theirs}.{names['shortcut'][0]}.weight" in weights:
        pairs, parts = [*pairs, names["shortcut"]], [*parts, "shortcut"]
    for (convolution, norm), part in zip(pairs, parts, strict=True):
        ours = f"stages.{stage}.{index}.{part}"
        state |= weights.convolution(f"{theirs}.{convolution}", f"{ours}.convolution")
        state |= weights.batch_norm(f"{theirs}.{norm}", f"{ours}.norm")
    return True


from_torchvision = converter("torchvision resnet", _read)
from_timm = converter("timm resnet", _read)
from_hf = converter("hf resnet", _read)
