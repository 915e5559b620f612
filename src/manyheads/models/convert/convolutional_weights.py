"""ResNets, BiT's ResNetV2 and VGG of torchvision, timm and Hugging Face -> ours.

Wide ResNets and ResNeXt are the same model with other numbers, which their tensors tell. VGGs of
the two libraries differ at other sizes than 224 (`models/vgg.py`).
"""

from manyheads.errors import UsageError
from manyheads.models.convert.converter import Made, Names, converter
from manyheads.models.convert.foreign import ForeignTensors, Settings, State
from manyheads.models.convert.layers import height_width
from manyheads.models.resnet import ResNetConfig
from manyheads.models.resnet_v2 import ResNetV2Config
from manyheads.models.vgg import VggConfig

PARTS = {2: ("first", "second"), 3: ("reduce", "mix", "expand")}  # by the number of convolutions


def _resnet(settings: Settings, weights: ForeignTensors, names: Names) -> Made[ResNetConfig]:
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


def _bit(settings: Settings, weights: ForeignTensors, names: Names) -> Made[ResNetV2Config]:
    blocks = names["blocks"]
    state = weights.convolution(names["stem"], "stem")
    depths: list[int] = []
    for stage in range(weights.reach(f"{blocks}.0.conv1.weight")):
        depths.append(weights.count(f"{blocks.format(stage)}."))
        for index in range(depths[-1]):
            theirs, ours = f"{blocks.format(stage)}.{index}", f"stages.{stage}.{index}"
            for number, part in enumerate(PARTS[3], start=1):
                state |= weights.convolution(f"{theirs}.conv{number}", f"{ours}.{part}")
                state |= weights.module(f"{theirs}.norm{number}", f"{ours}.norm{number}")
            if f"{theirs}.downsample.conv.weight" in weights:
                state |= weights.convolution(f"{theirs}.downsample.conv", f"{ours}.shortcut")
    state |= weights.module(names["norm"], "norm")
    head = weights.module(names["head"], "head")
    state |= head | {"head.weight": head["head.weight"].flatten(1)}  # a 1 x 1 convolution
    firsts = [f"stages.{stage}.0" for stage in range(len(depths))]
    config = ResNetV2Config(
        **height_width(settings["img_size"]),
        channels=state["stem.weight"].shape[1],
        stem_width=len(state["stem.weight"]),
        depths=tuple(depths),
        widths=tuple(len(state[f"{each}.mix.weight"]) for each in firsts),
        outputs=tuple(len(state[f"{each}.expand.weight"]) for each in firsts),
        norm_groups=settings["num_groups"],
        classes=len(state["head.bias"]),
    )
    return config, state


def _vgg(settings: Settings, weights: ForeignTensors, names: Names) -> Made[VggConfig]:
    numbers = [n for n in range(100) if f"features.{n}.weight" in weights]
    normed = "features.1.running_mean" in weights
    # Their numbers count convolutions, norms, ReLUs and halvings: where one is left over between
    # two convolutions, there is a halving.
    step = 3 if normed else 2
    convolutions = numbers[:: 2 if normed else 1]
    if not convolutions:
        raise UsageError("This model has no tensor 'features.0.weight': it is not a VGG.")
    state: State = {}
    depths: list[int] = []
    widths: list[int] = []
    layer = depth = 0
    for number, following in zip(convolutions, [*convolutions[1:], -1], strict=True):
        state |= weights.module(f"features.{number}", f"layers.{layer}.0")
        kernel = state[f"layers.{layer}.0.weight"]
        if normed:
            state |= weights.batch_norm(f"features.{number + 1}", f"layers.{layer}.1")
        layer, depth = layer + 1, depth + 1
        if following != number + step:
            depths.append(depth)
            widths.append(len(kernel))
            layer, depth = layer + 1, 0
    for theirs, ours in zip(names["linears"], ("expand", "mix", "head"), strict=True):
        module = weights.module(theirs, ours)
        # timm's are convolutions over the feature map.
        state |= module | {f"{ours}.weight": module[f"{ours}.weight"].flatten(1)}
    config = VggConfig(
        **height_width(settings["img_size"]),
        channels=state["layers.0.0.weight"].shape[1],
        depths=tuple(depths),
        widths=tuple(widths),
        hidden_size=len(state["mix.bias"]),
        classes=len(state["head.bias"]),
        norm="batch" if normed else "none",
        head=names["head"],
    )
    return config, state


resnet_of_torchvision = converter("torchvision resnet", _resnet)
resnet_of_timm, resnet_of_hf = converter("timm resnet", _resnet), converter("hf resnet", _resnet)
bit_of_timm, bit_of_hf = converter("timm bit", _bit), converter("hf bit", _bit)
vgg_of_torchvision, vgg_of_timm = converter("torchvision vgg", _vgg), converter("timm vgg", _vgg)
