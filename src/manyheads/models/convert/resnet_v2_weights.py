"""BiT's ResNetV2 in timm and Hugging Face -> ours."""

from typing import Any

from manyheads.models.convert.converter import keys, name_map
from manyheads.models.convert.foreign import ForeignTensors, Settings, State
from manyheads.models.convert.layers import height_width
from manyheads.models.resnet_v2 import ResNetV2Config

PARTS = ("reduce", "mix", "expand")
Result = tuple[ResNetV2Config, State]


@keys("timm bit").reader
def from_timm(settings: Settings, given: ForeignTensors) -> Result:
    """Map a ResNetV2 of timm's BiT kind."""
    return _read(given, settings, name_map("timm bit"))


@keys("hf bit").reader
def from_hf(settings: Settings, given: ForeignTensors) -> Result:
    """Map a BitForImageClassification."""
    return _read(given, settings, name_map("hf bit"))


def _read(given: ForeignTensors, settings: Settings, names: dict[str, Any]) -> Result:
    """Read either library's: below the stages their names are the same."""
    blocks = names["blocks"]
    state = given.convolution(names["stem"], "stem")
    depths: list[int] = []
    for stage in range(given.reach(f"{blocks}.0.conv1.weight")):
        depths.append(given.count(f"{blocks.format(stage)}."))
        for index in range(depths[-1]):
            theirs, ours = f"{blocks.format(stage)}.{index}", f"stages.{stage}.{index}"
            for number, part in enumerate(PARTS, start=1):
                state |= given.convolution(f"{theirs}.conv{number}", f"{ours}.{part}")
                state |= given.module(f"{theirs}.norm{number}", f"{ours}.norm{number}")
            if f"{theirs}.downsample.conv.weight" in given:
                state |= given.convolution(f"{theirs}.downsample.conv", f"{ours}.shortcut")
    state |= given.module(names["norm"], "norm")
    weights = given.module(names["head"], "head")
    state |= weights | {"head.weight": weights["head.weight"].flatten(1)}  # a 1 x 1 convolution
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
