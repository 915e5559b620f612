"""Hugging Face's CvtForImageClassification -> our Cvt, by the names of its stored files."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert.foreign import ForeignTensors, height_and_width
from manyheads.models.convert.layers import batch_norm, packed, single
from manyheads.models.cvt import CvtConfig

DEFAULTS: dict[str, Any] = {
    "image_size": 224,  # the model does not know it
    "num_heads": (1, 3, 6),
    "patch_stride": (4, 2, 2),
    "patch_padding": (2, 1, 1),
    "cls_token": (False, False, True),
    "qkv_projection_method": ("dw_bn", "dw_bn", "dw_bn"),
    "kernel_qkv": (3, 3, 3),
    "padding_kv": (1, 1, 1),
    "padding_q": (1, 1, 1),
    "stride_kv": (2, 2, 2),
    "stride_q": (1, 1, 1),
}
LAYER = {
    "layernorm_before": "around_attention.norm",
    "attention.output.dense": "attention.out",
    "layernorm_after": "around_feedforward.norm",
    "intermediate.dense": "feedforward.expand",
    "output.dense": "feedforward.contract",
}


def from_hf(
    settings: Mapping[str, Any] | object, tensors: Mapping[str, Tensor]
) -> tuple[CvtConfig, dict[str, Tensor]]:
    """Map a CvT with a class token in its last stage; dropout stays 0.

    Args:
        settings: the content of config.json, or a CvtConfig of theirs.
        tensors: the content of model.safetensors.

    Returns:
        The Config of our Cvt, and its state dict.

    Raises:
        UsageError: the model has something that ours has not, or lacks something.
    """
    told = dict(settings if isinstance(settings, Mapping) else vars(settings))
    settings = DEFAULTS | told
    kernel = single(settings["kernel_qkv"], "kernel_qkv")
    _check(settings, kernel)
    given = ForeignTensors(tensors, "Hugging Face CvT")
    state: dict[str, Tensor] = {}
    layers, kernels = [], []
    stages = given.count("cvt.encoder.stages.")
    for stage in range(stages):
        theirs, ours = f"cvt.encoder.stages.{stage}", f"stages.{stage}"
        embedding = f"{theirs}.embedding.convolution_embeddings"
        state |= given.module(f"{embedding}.projection", f"{ours}.embed.project")
        state |= given.module(f"{embedding}.normalization", f"{ours}.embed.norm")
        kernels.append(state[f"{ours}.embed.project.weight"])
        if stage == stages - 1:
            state[f"{ours}.tokens.token"] = given.take(f"{theirs}.cls_token")
        layers.append(given.count(f"{theirs}.layers."))
        for layer in range(layers[-1]):
            state |= _layer(
                given,
                f"{theirs}.layers.{layer}",
                f"{ours}.blocks.{layer}",
                settings["num_heads"][stage],
            )
    state |= given.module("layernorm", "norm")
    state |= given.module("classifier", "head")
    given.finish()
    height, width = height_and_width(settings["image_size"])
    config = CvtConfig(
        height=height,
        width=width,
        channels=kernels[0].shape[1],
        dims=tuple(kernel.shape[0] for kernel in kernels),
        layers=tuple(layers),
        heads=tuple(settings["num_heads"]),
        kernels=tuple(kernel.shape[2] for kernel in kernels),
        strides=tuple(settings["patch_stride"]),
        paddings=tuple(settings["patch_padding"]),
        kernel=kernel,  # type: ignore[arg-type]
        key_stride=single(settings["stride_kv"], "stride_kv"),  # type: ignore[arg-type]
        expansion=len(state["stages.0.blocks.0.feedforward.expand.bias"]) / kernels[0].shape[0],
        classes=len(state["head.bias"]),
    )
    return config, state


def _layer(given: ForeignTensors, theirs: str, ours: str, heads: int) -> dict[str, Tensor]:
    state: dict[str, Tensor] = {}
    for name, our_name in LAYER.items():
        state |= given.module(f"{theirs}.{name}", f"{ours}.{our_name}")
    attention = f"{theirs}.attention.attention"
    for part in ("query", "key", "value"):
        projection = f"{attention}.convolution_projection_{part}.convolution_projection"
        mine = f"{ours}.attention.{part}"
        state[f"{mine}.convolve.weight"] = given.take(f"{projection}.convolution.weight")
        state |= batch_norm(given, f"{projection}.normalization", f"{mine}.norm")
    qkv = [f"{attention}.projection_{part}" for part in ("query", "key", "value")]
    state |= packed(given, qkv, f"{ours}.attention.qkv")
    # Theirs divides scores by the root of the whole width, ours by that of a head's: the queries
    # take the difference.
    dim = len(state[f"{ours}.attention.out.bias"])
    for part in ("weight", "bias"):
        scaled = state[f"{ours}.attention.qkv.{part}"].clone()
        scaled[:dim] *= heads**-0.5
        state[f"{ours}.attention.qkv.{part}"] = scaled
    return state


def _check(settings: Mapping[str, Any], kernel: Any) -> None:
    expected = {
        "qkv_projection_method": "dw_bn",
        "stride_q": 1,
        "padding_q": kernel // 2,
        "padding_kv": kernel // 2,
    }
    for name, value in expected.items():
        found = single(settings[name], name)
        if found != value:
            raise UsageError(
                f"This Hugging Face CvT has {name} {found!r}; ours only knows {value!r}."
            )
    *before, last = settings["cls_token"]
    if any(before) or not last:
        raise UsageError(
            f"This Hugging Face CvT has cls_token {tuple(settings['cls_token'])}; ours has a class "
            "token in the last stage only."
        )
