"""BiT's ResNetV2 in timm and Hugging Face -> ours."""

from manyheads.models.convert.foreign import ForeignTensors, Settings, State, Tensors
from manyheads.models.convert.layers import check_parts, completed, height_and_width
from manyheads.models.convert.resnet import TIMM_PARTS
from manyheads.models.resnet_v2 import ResNetV2Config

PARTS = ("reduce", "mix", "expand")
HF_PARTS = {  # what tensors do not show
    "layer_type": ("preactivation",),
    "hidden_act": ("relu",),
    "global_padding": (None,),
    "embedding_dynamic_padding": (False,),
    "output_stride": (32,),
}
Result = tuple[ResNetV2Config, State]


def from_timm(settings: Settings, tensors: Tensors) -> Result:
    """Map a ResNetV2 of timm's BiT kind."""
    check_parts(settings, TIMM_PARTS, "timm BiT")
    given = ForeignTensors(tensors, "timm BiT")
    return _read(given, settings, "stem.conv", "stages.{}.blocks", "norm", "head.fc")


def from_hf(settings: Settings, tensors: Tensors) -> Result:
    """Map a BitForImageClassification."""
    check_parts(settings, HF_PARTS, "Hugging Face BiT")
    given = ForeignTensors(tensors, "Hugging Face BiT")
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
    given.finish()
    firsts = [f"stages.{stage}.0" for stage in range(len(depths))]
    settings = completed(settings, {"img_size": 224, "num_groups": 32})
    height, width = height_and_width(settings["img_size"])
    config = ResNetV2Config(
        height=height,
        width=width,
        channels=state["stem.weight"].shape[1],
        stem_width=len(state["stem.weight"]),
        depths=tuple(depths),
        widths=tuple(len(state[f"{each}.mix.weight"]) for each in firsts),
        outputs=tuple(len(state[f"{each}.expand.weight"]) for each in firsts),
        norm_groups=settings["num_groups"],
        classes=len(state["head.bias"]),
    )
    return config, state
