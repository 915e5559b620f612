"""Google's npz checkpoints of ViT, R+ViT and BiT, through the names that timm has for the same.

Flax keeps a linear map as (input, output) and filters as (row, column, input, output).
"""

from itertools import count

import torch

from manyheads.errors import UsageError
from manyheads.models.convert.converter import Converter, Names, keys, name_map
from manyheads.models.convert.convolutional_weights import bit_of_timm
from manyheads.models.convert.foreign import ForeignTensors, Settings, State, Tensors
from manyheads.models.convert.layers import prefixed
from manyheads.models.convert.vit_weights import BACKBONE, vit_of_timm
from manyheads.models.resnet_v2 import ResNetV2Config
from manyheads.models.vit import VitConfig

BIT = "resnet/"


def _convert(settings: Settings, tensors: Tensors) -> tuple[VitConfig | ResNetV2Config, State]:
    """Map the arrays of an npz file, which say all that is needed.

    Settings may say `img_size` for a ViT whose grid is not square, and `num_groups`.
    """
    for prefix in ("opt/target/", "params/"):  # with the optimizer's state, or without
        tensors = prefixed(tensors, prefix) or tensors
    if any(name.startswith(BIT) for name in tensors):
        return _bit(settings, tensors)
    if "embedding/kernel" in tensors:
        return _vit(settings, tensors)
    shown = ", ".join(list(tensors)[:4])
    raise UsageError(
        f"This file has tensors named {shown}, ...: it is no checkpoint of Google's ViT, which has "
        f"embedding/kernel, nor of BiT, whose names begin with {BIT}."
    )


from_google = Converter(keys("google"), _convert)


def _vit(settings: Settings, tensors: Tensors) -> tuple[VitConfig, State]:
    weights = ForeignTensors(tensors, "Google ViT")
    named = {
        "cls_token": weights.take("cls"),
        "pos_embed": weights.take("Transformer/posembed_input/pos_embedding"),
        "patch_embed.proj.bias": weights.take("embedding/bias"),
        **_filters(weights, "embedding", "patch_embed.proj"),
        **_norm(weights, "Transformer/encoder_norm", "norm"),
        **_linear(weights, "head", "head"),
    }
    if "pre_logits/kernel" in weights:
        named |= _linear(weights, "pre_logits", "pre_logits.fc")
    heads = 0
    for layer in range(weights.reach("Transformer/encoderblock_{}/LayerNorm_0/scale")):
        theirs, ours = f"Transformer/encoderblock_{layer}", f"blocks.{layer}"
        named |= _norm(weights, f"{theirs}/LayerNorm_0", f"{ours}.norm1")
        named |= _norm(weights, f"{theirs}/LayerNorm_2", f"{ours}.norm2")
        named |= _linear(weights, f"{theirs}/MlpBlock_3/Dense_0", f"{ours}.mlp.fc1")
        named |= _linear(weights, f"{theirs}/MlpBlock_3/Dense_1", f"{ours}.mlp.fc2")
        attention = f"{theirs}/MultiHeadDotProductAttention_1"
        named |= _linear(weights, f"{attention}/out", f"{ours}.attn.proj", inputs=2)
        heads = len(tensors[f"{attention}/out/kernel"])  # (head, width, output)
        qkv = [_linear(weights, f"{attention}/{x}", "qkv") for x in ("query", "key", "value")]
        for name in ("qkv.weight", "qkv.bias"):
            named[f"{ours}.attn.{name}"] = torch.cat([each[name] for each in qkv])
    if "conv_root/kernel" in weights:
        stem = BACKBONE + (".stem" if "block1/unit1/conv1/kernel" in weights else "")
        named |= _filters(weights, "conv_root", f"{stem}.conv")
        named |= _norm(weights, "gn_root", f"{stem}.norm")
        named |= _stages(weights, name_map("google hybrid"), f"{BACKBONE}.stages")
    weights.finish()
    return vit_of_timm(dict(settings) | {"num_heads": heads}, named)


def _bit(settings: Settings, tensors: Tensors) -> tuple[ResNetV2Config, State]:
    weights = ForeignTensors(tensors, "Google BiT")
    named = {
        **_filters(weights, f"{BIT}root_block/standardized_conv2d", "stem.conv"),
        **_filters(weights, f"{BIT}head/conv2d", "head.fc"),
        "head.fc.bias": weights.take(f"{BIT}head/conv2d/bias"),
        **_norm(weights, f"{BIT}group_norm", "norm"),
        **_stages(weights, name_map("google bit"), "stages"),
    }
    weights.finish()
    return bit_of_timm(settings, named)


def _stages(weights: ForeignTensors, names: Names, ours: str) -> State:
    """Take the residual blocks of either kind."""
    named: State = {}
    for stage in count(1):
        for block in count(1):
            theirs = names["unit"].format(stage, block)
            mine = f"{ours}.{stage - 1}.blocks.{block - 1}"
            if f"{theirs}/{names['convolutions'][0]}/kernel" not in weights:
                break
            pairs = zip(names["convolutions"], names["norms"], strict=True)
            for number, (convolution, norm) in enumerate(pairs, start=1):
                named |= _filters(weights, f"{theirs}/{convolution}", f"{mine}.conv{number}")
                named |= _norm(weights, f"{theirs}/{norm}", f"{mine}.norm{number}")
            projection = f"{theirs}/{names['projection']}"
            if f"{projection}/kernel" in weights:
                named |= _filters(weights, projection, f"{mine}.downsample.conv")
                if norm := names.get("projection_norm"):
                    named |= _norm(weights, f"{theirs}/{norm}", f"{mine}.downsample.norm")
        if block == 1:  # there is no such stage
            break
    return named


def _filters(weights: ForeignTensors, theirs: str, ours: str) -> State:
    return {f"{ours}.weight": weights.take(f"{theirs}/kernel").permute(3, 2, 0, 1)}


def _linear(weights: ForeignTensors, theirs: str, ours: str, inputs: int = 1) -> State:
    """Take a linear map, whose first axes are inputs; those of attention have one for the head."""
    kernel = weights.take(f"{theirs}/kernel").flatten(inputs).flatten(0, inputs - 1)
    bias = weights.take(f"{theirs}/bias").flatten()
    return {f"{ours}.weight": kernel.T, f"{ours}.bias": bias}


def _norm(weights: ForeignTensors, theirs: str, ours: str) -> State:
    """Take a norm; those of a ResNet are stored as (1, 1, 1, channel), those of BiT in Greek."""
    weight, bias = ("gamma", "beta") if theirs.startswith(BIT) else ("scale", "bias")
    return {
        f"{ours}.weight": weights.take(f"{theirs}/{weight}").flatten(),
        f"{ours}.bias": weights.take(f"{theirs}/{bias}").flatten(),
    }
