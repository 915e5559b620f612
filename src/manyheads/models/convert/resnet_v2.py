"""BiT's ResNetV2 in timm and Hugging Face -> ours."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from manyheads.models.convert.foreign import ForeignTensors, height_and_width
from manyheads.models.convert.resnet import check_parts
from manyheads.models.resnet_v2 import ResNetV2Config

PARTS = ("reduce", "mix", "expand")
# What Hugging Face's configuration may say beside shapes, and the one value that ours has.
HF_PARTS = {
    "layer_type": "preactivation",
    "hidden_act": "relu",
    "global_padding": None,
    "embedding_dynamic_padding": False,
    "output_stride": 32,
}


def from_timm(
    settings: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[ResNetV2Config, dict[str, Tensor]]:
    """Map a ResNetV2 of timm's BiT kind.

    Raises:
        UsageError: the model has something that ours has not, or lacks something.
    """
    check_parts(settings, {"global_pool": "avg"}, "timm BiT")
    given = ForeignTensors(tensors, "timm BiT")
    return _read(given, "", "stem.conv", "blocks", "head.fc", settings)


def from_hf(
    settings: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[ResNetV2Config, dict[str, Tensor]]:
    """Map a BitForImageClassification.

    Raises:
        UsageError: the model has something that ours has not, or lacks something.
    """
    check_parts(settings, HF_PARTS, "Hugging Face BiT")
    given = ForeignTensors(tensors, "Hugging Face BiT")
    return _read(
        given, "bit.", "bit.embedder.convolution", "layers", "classifier.1", dict(settings)
    )


def _read(
    given: ForeignTensors,
    prefix: str,
    stem: str,
    blocks: str,
    head: str,
    settings: Mapping[str, Any],
) -> tuple[ResNetV2Config, dict[str, Tensor]]:
    """Read either library's: below the stages their names are the same."""
    state = given.convolution(stem, "stem")
    stages = f"{prefix}stages" if not prefix else f"{prefix}encoder.stages"
    depths: list[int] = []
    while f"{stages}.{len(depths)}.{blocks}.0.conv1.weight" in given:
        stage = len(depths)
        depths.append(given.count(f"{stages}.{stage}.{blocks}."))
        for index in range(depths[-1]):
            theirs, ours = f"{stages}.{stage}.{blocks}.{index}", f"stages.{stage}.{index}"
            for number, part in enumerate(PARTS, start=1):
                state |= given.convolution(f"{theirs}.conv{number}", f"{ours}.{part}")
                state |= given.module(f"{theirs}.norm{number}", f"{ours}.norm{number}")
            if f"{theirs}.downsample.conv.weight" in given:
                state |= given.convolution(f"{theirs}.downsample.conv", f"{ours}.shortcut")
    state |= given.module(f"{prefix}norm", "norm")
    weights = given.module(head, "head")
    state |= weights | {"head.weight": weights["head.weight"].flatten(1)}  # a 1 x 1 convolution
    given.finish()
    firsts = [f"stages.{stage}.0" for stage in range(len(depths))]
    height, width = height_and_width(settings.get("img_size") or 224)
    config = ResNetV2Config(
        height=height,
        width=width,
        channels=state["stem.weight"].shape[1],
        stem_width=len(state["stem.weight"]),
        depths=tuple(depths),
        widths=tuple(len(state[f"{each}.mix.weight"]) for each in firsts),
        outputs=tuple(len(state[f"{each}.expand.weight"]) for each in firsts),
        norm_groups=settings.get("num_groups", 32),
        classes=len(state["head.bias"]),
    )
    return config, state
