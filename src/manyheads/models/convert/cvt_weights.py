"""Hugging Face's CvtForImageClassification -> our Cvt, by the names of its stored files."""

from typing import Any

from manyheads.errors import UsageError
from manyheads.models.convert.converter import keys, name_map
from manyheads.models.convert.foreign import ForeignTensors, Settings, State
from manyheads.models.convert.layers import height_width, packed, single
from manyheads.models.cvt import CvtConfig

BLOCK, QKV = name_map("hf vit")["block"], ("query", "key", "value")
SINGLE = ("kernel_qkv", "padding_kv", "padding_q", "qkv_projection_method", "stride_q")


def _check(settings: Settings) -> None:
    found: dict[str, Any] = {name: single(settings[name], name) for name in SINGLE}
    half = found["kernel_qkv"] // 2
    supported = {"padding_q": half, "padding_kv": half, "stride_q": 1}
    for name, value in (supported | {"qkv_projection_method": "dw_bn"}).items():
        if found[name] != value:
            raise UsageError(
                f"This Hugging Face CvT has {name} = {found[name]!r}; only {value!r} is supported."
            )
    *before, last = settings["cls_token"]
    if any(before) or not last:
        raise UsageError(
            f"This Hugging Face CvT has cls_token {tuple(settings['cls_token'])}; Cvt has a class "
            "token in the last stage only."
        )


@keys("hf cvt", _check).reader
def from_hf(settings: Settings, weights: ForeignTensors) -> tuple[CvtConfig, State]:
    """Map a CvT with a class token in its last stage; dropout stays 0."""
    state: State = {}
    layers, kernels = [], []
    stages = weights.count("cvt.encoder.stages.")
    for stage in range(stages):
        theirs, ours = f"cvt.encoder.stages.{stage}", f"stages.{stage}"
        embedding = f"{theirs}.embedding.convolution_embeddings"
        state |= weights.module(f"{embedding}.projection", f"{ours}.embed.project")
        state |= weights.module(f"{embedding}.normalization", f"{ours}.embed.norm")
        kernels.append(state[f"{ours}.embed.project.weight"])
        if stage == stages - 1:
            state[f"{ours}.tokens.token"] = weights.take(f"{theirs}.cls_token")
        layers.append(weights.count(f"{theirs}.layers."))
        for layer in range(layers[-1]):
            block, heads = f"{theirs}.layers.{layer}", settings["num_heads"][stage]
            state |= _layer(weights, block, f"{ours}.blocks.{layer}", heads)
    state |= weights.module("layernorm", "norm")
    state |= weights.module("classifier", "head")
    config = CvtConfig(
        **height_width(settings["image_size"]),
        channels=kernels[0].shape[1],
        dims=tuple(kernel.shape[0] for kernel in kernels),
        layers=tuple(layers),
        heads=tuple(settings["num_heads"]),
        kernels=tuple(kernel.shape[2] for kernel in kernels),
        strides=tuple(settings["patch_stride"]),
        paddings=tuple(settings["patch_padding"]),
        kernel=single(settings["kernel_qkv"], "kernel_qkv"),  # type: ignore[arg-type]
        key_stride=single(settings["stride_kv"], "stride_kv"),  # type: ignore[arg-type]
        expansion=len(state["stages.0.blocks.0.feedforward.expand.bias"]) / kernels[0].shape[0],
        classes=len(state["head.bias"]),
    )
    return config, state


def _layer(weights: ForeignTensors, theirs: str, ours: str, heads: int) -> State:
    state = weights.modules(theirs, ours, BLOCK)
    attention = f"{theirs}.attention.attention"
    for part in QKV:
        projection = f"{attention}.convolution_projection_{part}.convolution_projection"
        mine = f"{ours}.attention.{part}"
        state |= weights.convolution(f"{projection}.convolution", f"{mine}.convolve")
        state |= weights.batch_norm(f"{projection}.normalization", f"{mine}.norm")
    qkv = [f"{attention}.projection_{part}" for part in QKV]
    state |= packed(weights, qkv, f"{ours}.attention.qkv")
    # Theirs divides scores by the root of the whole width, ours by that of a head's: the queries
    # take the difference.
    dim = len(state[f"{ours}.attention.out.bias"])
    for part in ("weight", "bias"):
        scaled = state[f"{ours}.attention.qkv.{part}"].clone()
        scaled[:dim] *= heads**-0.5
        state[f"{ours}.attention.qkv.{part}"] = scaled
    return state
