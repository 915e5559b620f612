"""Google's npz checkpoints of ViT, R+ViT and BiT, through the names that timm has for the same.

Flax keeps a linear map as (input, output) and filters as (row, column, input, output).
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert import resnet_v2, timm
from manyheads.models.convert.foreign import ForeignTensors
from manyheads.models.resnet_v2 import ResNetV2Config
from manyheads.models.vit import VitConfig

BIT = "resnet/"


def from_google(
    settings: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[VitConfig | ResNetV2Config, dict[str, Tensor]]:
    """Map a checkpoint; its tensors say all that is needed.

    Args:
        settings: may say `img_size` for a ViT whose grid is not square, and `num_groups`.
        tensors: the arrays of the npz file.

    Raises:
        UsageError: not a checkpoint of these, or with something that ours has not.
    """
    for prefix in ("opt/target/", "params/"):  # with the optimizer's state, or without
        if any(name.startswith(prefix) for name in tensors):
            tensors = {
                name.removeprefix(prefix): tensor
                for name, tensor in tensors.items()
                if name.startswith(prefix)
            }
    if any(name.startswith(BIT) for name in tensors):
        return _bit(settings, tensors)
    if "embedding/kernel" in tensors:
        return _vit(settings, tensors)
    shown = ", ".join(list(tensors)[:4])
    raise UsageError(
        f"This file has tensors named {shown}, ...: it is no checkpoint of Google's ViT, which has "
        f"embedding/kernel, nor of BiT, whose names begin with {BIT}."
    )


def _vit(
    settings: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[VitConfig, dict[str, Tensor]]:
    given = ForeignTensors(tensors, "Google ViT")
    named = {
        "cls_token": given.take("cls"),
        "pos_embed": given.take("Transformer/posembed_input/pos_embedding"),
        "patch_embed.proj.weight": _filters(given.take("embedding/kernel")),
        "patch_embed.proj.bias": given.take("embedding/bias"),
        **_norm(given, "Transformer/encoder_norm", "norm"),
        **_linear(given, "head", "head"),
    }
    if "pre_logits/kernel" in given:
        named |= _linear(given, "pre_logits", "pre_logits.fc")
    heads = layers = 0
    while f"Transformer/encoderblock_{layers}/LayerNorm_0/scale" in given:
        theirs, ours = f"Transformer/encoderblock_{layers}", f"blocks.{layers}"
        named |= _norm(given, f"{theirs}/LayerNorm_0", f"{ours}.norm1")
        named |= _norm(given, f"{theirs}/LayerNorm_2", f"{ours}.norm2")
        named |= _linear(given, f"{theirs}/MlpBlock_3/Dense_0", f"{ours}.mlp.fc1")
        named |= _linear(given, f"{theirs}/MlpBlock_3/Dense_1", f"{ours}.mlp.fc2")
        attention = f"{theirs}/MultiHeadDotProductAttention_1"
        weights, biases = [], []
        for part in ("query", "key", "value"):  # kernels (input, head, width)
            kernel = given.take(f"{attention}/{part}/kernel")
            heads = kernel.shape[1]
            weights.append(kernel.flatten(1).T)
            biases.append(given.take(f"{attention}/{part}/bias").flatten())
        named[f"{ours}.attn.qkv.weight"] = torch.cat(weights)
        named[f"{ours}.attn.qkv.bias"] = torch.cat(biases)
        out = given.take(f"{attention}/out/kernel")  # (head, width, output)
        named[f"{ours}.attn.proj.weight"] = out.flatten(0, 1).T
        named[f"{ours}.attn.proj.bias"] = given.take(f"{attention}/out/bias")
        layers += 1
    if "conv_root/kernel" in given:
        named |= _root(given)
    given.finish()
    return timm.vit(dict(settings) | {"num_heads": heads}, named)


def _root(given: ForeignTensors) -> dict[str, Tensor]:
    """Take the ResNet in front of a hybrid."""
    stem = timm.BACKBONE + (".stem" if "block1/unit1/conv1/kernel" in given else "")
    named = {f"{stem}.conv.weight": _filters(given.take("conv_root/kernel"))}
    named |= _norm(given, "gn_root", f"{stem}.norm")
    stage = 0
    while f"block{stage + 1}/unit1/conv1/kernel" in given:
        block = 0
        while f"block{stage + 1}/unit{block + 1}/conv1/kernel" in given:
            theirs = f"block{stage + 1}/unit{block + 1}"
            ours = f"{timm.BACKBONE}.stages.{stage}.blocks.{block}"
            for number in timm.RESIDUAL:
                kernel = given.take(f"{theirs}/conv{number}/kernel")
                named[f"{ours}.conv{number}.weight"] = _filters(kernel)
                named |= _norm(given, f"{theirs}/gn{number}", f"{ours}.norm{number}")
            if f"{theirs}/conv_proj/kernel" in given:
                kernel = given.take(f"{theirs}/conv_proj/kernel")
                named[f"{ours}.downsample.conv.weight"] = _filters(kernel)
                named |= _norm(given, f"{theirs}/gn_proj", f"{ours}.downsample.norm")
            block += 1
        stage += 1
    return named


def _bit(
    settings: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[ResNetV2Config, dict[str, Tensor]]:
    given = ForeignTensors(tensors, "Google BiT")
    convolution, norm = "standardized_conv2d/kernel", "group_norm"
    named = {
        "stem.conv.weight": _filters(given.take(f"{BIT}root_block/{convolution}")),
        "head.fc.weight": _filters(given.take(f"{BIT}head/conv2d/kernel")),
        "head.fc.bias": given.take(f"{BIT}head/conv2d/bias"),
        **_norm(given, f"{BIT}{norm}", "norm", weight="gamma", bias="beta"),
    }
    stage = 0
    while f"{BIT}block{stage + 1}/unit01/a/{convolution}" in given:
        block = 0
        while f"{BIT}block{stage + 1}/unit{block + 1:02d}/a/{convolution}" in given:
            theirs = f"{BIT}block{stage + 1}/unit{block + 1:02d}"
            ours = f"stages.{stage}.blocks.{block}"
            for number, part in enumerate("abc", start=1):
                kernel = given.take(f"{theirs}/{part}/{convolution}")
                named[f"{ours}.conv{number}.weight"] = _filters(kernel)
                named |= _norm(
                    given, f"{theirs}/{part}/{norm}", f"{ours}.norm{number}", "gamma", "beta"
                )
            if f"{theirs}/a/proj/{convolution}" in given:
                kernel = given.take(f"{theirs}/a/proj/{convolution}")
                named[f"{ours}.downsample.conv.weight"] = _filters(kernel)
            block += 1
        stage += 1
    given.finish()
    return resnet_v2.from_timm(settings, named)


def _filters(kernel: Tensor) -> Tensor:
    return kernel.permute(3, 2, 0, 1)


def _linear(given: ForeignTensors, theirs: str, ours: str) -> dict[str, Tensor]:
    return {
        f"{ours}.weight": given.take(f"{theirs}/kernel").T,
        f"{ours}.bias": given.take(f"{theirs}/bias"),
    }


def _norm(
    given: ForeignTensors, theirs: str, ours: str, weight: str = "scale", bias: str = "bias"
) -> dict[str, Tensor]:
    """Take a norm; those of a ResNet are stored as (1, 1, 1, channel)."""
    return {
        f"{ours}.weight": given.take(f"{theirs}/{weight}").flatten(),
        f"{ours}.bias": given.take(f"{theirs}/{bias}").flatten(),
    }
