"""BiT's ResNetV2 in timm and Hugging Face -> ours."""

from manyheads.models.convert.converter import Made, Names, converter
from manyheads.models.convert.foreign import ForeignTensors, Settings
from manyheads.models.convert.layers import height_width
from manyheads.models.resnet_v2 import ResNetV2Config

PARTS = ("reduce", "mix", "expand")


def _read(settings: Settings, weights: ForeignTensors, names: Names) -> Made[ResNetV2Config]:
    blocks = names["blocks"]
    state = weights.convolution(names["stem"], "stem")
    depths: list[int] = []
    for stage in range(weights.reach(f"{blocks}.0.conv1.weight")):
        depths.append(weights.count(f"{blocks.format(stage)}."))
        for index in range(depths[-1]):
            theirs, ours = f"{blocks.format(stage)}.{index}", f"stages.{stage}.{index}"
            for number, part in enumerate(PARTS, start=1):
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


from_timm = converter("timm bit", _read)
from_hf = converter("hf bit", _read)
