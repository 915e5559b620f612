"""BiT's ResNetV2 in timm and Hugging Face -> ours."""

from dataclasses import replace

from manyheads.models.convert.converter import HF_IDLE, Keys
from manyheads.models.convert.foreign import ForeignTensors, Settings, State
from manyheads.models.convert.layers import height_width
from manyheads.models.convert.timm import CONVOLUTIONAL
from manyheads.models.resnet_v2 import ResNetV2Config

PARTS = ("reduce", "mix", "expand")
READ = {"img_size": 224, "num_groups": 32}
TIMM_KEYS = replace(
    CONVOLUTIONAL,
    kind="timm BiT",
    read=READ,
    only={**CONVOLUTIONAL.only, "stem_type": ("fixed",)},
)
HF_KEYS = Keys(
    kind="Hugging Face BiT",
    read=READ,
    only={
        "layer_type": ("preactivation",),
        "hidden_act": ("relu",),
        "global_padding": (None,),
        "embedding_dynamic_padding": (False,),
        "output_stride": (32,),
    },
    shown="depths=depths num_channels=channels embedding_size hidden_sizes width_factor",
    idle=f"{HF_IDLE} drop_path_rate",
)
Result = tuple[ResNetV2Config, State]


@TIMM_KEYS.reader
def from_timm(settings: Settings, given: ForeignTensors) -> Result:
    """Map a ResNetV2 of timm's BiT kind."""
    return _read(given, settings, "stem.conv", "stages.{}.blocks", "norm", "head.fc")


@HF_KEYS.reader
def from_hf(settings: Settings, given: ForeignTensors) -> Result:
    """Map a BitForImageClassification."""
    blocks = "bit.encoder.stages.{}.layers"
    return _read(given, settings, "bit.embedder.convolution", blocks, "bit.norm", "classifier.1")


def _read(
    given: ForeignTensors, settings: Settings, stem: str, blocks: str, norm: str, head: str
) -> Result:
    """Read either library's: below the stages their names are the same."""
    state = given.convolution(stem, "stem")
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
    state |= given.module(norm, "norm")
    weights = given.module(head, "head")
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
