"""VGG of torchvision and timm -> ours; at other sizes than 224 they differ (`models/vgg.py`)."""

from manyheads.errors import UsageError
from manyheads.models.convert.converter import Made, Names, converter
from manyheads.models.convert.foreign import ForeignTensors, Settings, State
from manyheads.models.convert.layers import height_width
from manyheads.models.vgg import VggConfig


def _read(settings: Settings, weights: ForeignTensors, names: Names) -> Made[VggConfig]:
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
    channels = None
    for number, following in zip(convolutions, [*convolutions[1:], -1], strict=True):
        state |= weights.module(f"features.{number}", f"layers.{layer}.0")
        kernel = state[f"layers.{layer}.0.weight"]
        channels = channels or kernel.shape[1]
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
        channels=channels or 0,
        depths=tuple(depths),
        widths=tuple(widths),
        hidden_size=len(state["mix.bias"]),
        classes=len(state["head.bias"]),
        norm="batch" if normed else "none",
        head=names["head"],
    )
    return config, state


from_torchvision = converter("torchvision vgg", _read)
from_timm = converter("timm vgg", _read)
