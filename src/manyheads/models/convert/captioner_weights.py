"""Hugging Face's VisionEncoderDecoderModel -> our Captioner, by the names of its stored files.

Any image encoder that can be converted, before the decoder of TrOCR or GPT-2.
"""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.captioner import CaptionerConfig
from manyheads.models.convert import vit_weights as vits
from manyheads.models.convert.converter import ACTIVATION_NAMES, Converter, keys, name_map, table
from manyheads.models.convert.foreign import ForeignTensors, Settings, State, Tensors
from manyheads.models.convert.layers import packed, prefixed
from manyheads.models.vit import VitConfig

ENCODERS: dict[str, Converter[VitConfig]] = {
    "clip_vision_model": vits.clip,
    "deit": vits.deit_of_hf,
    "dinov2": vits.dinov2_of_hf,
    "dinov2_with_registers": vits.dinov2_of_hf,
    "siglip_vision_model": vits.siglip,
    "vit": vits.vit_of_hf,
}
# Tensors behind the vectors that a decoder reads; a class token is in front of them.
BEHIND = re.compile(r"head\.|representation\.|pool_norm\.|pool\.(?!token$)")
WHOLE = keys("hf captioner")
OFFSET = 2  # rows of their table in front of the first position
TROCR, GPT2 = name_map("hf trocr"), name_map("hf gpt2")
SPECIAL = ("decoder_start_token_id", "pad_token_id", "eos_token_id")


# What a configuration says: whole, of the encoder, and of the decoder.
Checked = tuple[Settings, Settings, Settings]


def _check(about: Settings) -> Checked:
    sides = [table(about, side) for side in ("encoder", "decoder")]
    kind, writer = (side.get("model_type") for side in sides)
    if kind not in ENCODERS or writer not in DECODERS:
        raise UsageError(
            f"This Hugging Face VisionEncoderDecoder has the encoder {kind!r} and the decoder "
            f"{writer!r}. Understood are the encoders {', '.join(ENCODERS)} and the decoders "
            f"{', '.join(DECODERS)}."
        )
    known, _ = DECODERS[writer]
    decoder = known(sides[1])
    start, pad = (_special(key, (about, sides[1])) for key in SPECIAL[:2])
    if start == pad and decoder.get("use_learned_position_embeddings") is False:
        raise UsageError(
            "This TrOCR decoder starts with padding, which its sinusoidal positions do not count: "
            "there is no equivalent here."
        )
    return WHOLE(about), ENCODERS[kind].check(sides[0]), decoder


def _convert(about: Checked, tensors: Tensors) -> tuple[CaptionerConfig, State]:
    """Map a VisionEncoderDecoderModel; dropout stays 0.

    What stands behind the vectors of the image's tokens, such as a pooler, is left out.
    """
    whole, of_encoder, of_decoder = about
    writer = of_decoder["model_type"]
    image, seen = ENCODERS[of_encoder["model_type"]](of_encoder, prefixed(tensors, "encoder."))
    state = {f"encoder.{n}": t for n, t in seen.items() if not BEHIND.match(n)}
    image = replace(image, classes=1, representation=None)  # without a head, of whatever size
    rest = {n: t for n, t in tensors.items() if not n.startswith("encoder.")}
    weights = ForeignTensors(rest, f"Hugging Face {writer} decoder")
    known, read = DECODERS[writer]
    fields, written = read(of_decoder, weights)
    state |= written
    bridge = "enc_to_dec_proj.weight" in weights
    if bridge:
        state |= weights.module("enc_to_dec_proj", "bridge")
    weights.finish()
    start, pad, end = (_special(key, (whole, of_decoder)) for key in SPECIAL)
    config = CaptionerConfig(
        **fields,
        image=image,
        vocabulary=len(state["target_embedding.weight"]),
        dim=state["target_embedding.weight"].shape[1],
        ffn_dim=len(state["decoder.blocks.0.feedforward.expand.bias"]),
        max_length=len(state["positions.table"]),
        positions="learned",
        tied="output.weight" not in state,
        bridge=bridge,
        dropout=0.0,
        start=start,
        pad=pad,
        end=end,
    )
    known.compare(of_decoder, config)
    WHOLE.compare(whole, config)
    if config.source_dim == config.dim:  # equally wide: keys and values are below the queries
        for layer in range(config.decoder_layers):
            for part in ("weight", "bias"):
                name = f"decoder.blocks.{layer}.cross"
                both = state[f"{name}.qkv.{part}"], state.pop(f"{name}.kv.{part}")
                state[f"{name}.qkv.{part}"] = torch.cat(both)
    return config, state


from_hf = Converter(_check, _convert)


def _special(key: str, tables: Sequence[Settings]) -> int:
    """Find the number of a special token: the whole model's, or the decoder's."""
    for each in tables:
        if type(each.get(key)) is int:
            return int(each[key])
    raise UsageError(
        f"The model's configuration does not say {key}: add it to config.json, as the model's "
        "makers use it."
    )


def _trocr(settings: Settings, weights: ForeignTensors) -> tuple[dict[str, Any], State]:
    """Take the decoder of TrOCR: post-norm, with a norm over the embeddings or without."""
    inner = "decoder.model.decoder."
    state = {"target_embedding.weight": weights.take(f"{inner}embed_tokens.weight")}
    dim = state["target_embedding.weight"].shape[1]
    weights.skip([f"{inner}embed_positions._float_tensor"])
    if settings["use_learned_position_embeddings"]:
        state["positions.table"] = weights.take(f"{inner}embed_positions.weight")[OFFSET:]
    else:
        length, first = settings["max_position_embeddings"], settings["pad_token_id"] + 1
        state["positions.table"] = sinusoids(first + length, dim)[first:]
    normed = f"{inner}layernorm_embedding.weight" in weights
    if normed:
        state |= weights.module(f"{inner}layernorm_embedding", "embedding_norm")
    depth = weights.count(f"{inner}layers.")
    for layer in range(depth):
        theirs, ours = f"{inner}layers.{layer}", f"decoder.blocks.{layer}"
        state |= weights.modules(theirs, ours, TROCR)
        own, cross = (
            [f"{theirs}.{part}.{each}_proj" for each in "qkv"]
            for part in ("self_attn", "encoder_attn")
        )
        state |= packed(weights, own, f"{ours}.attention.qkv")
        state |= packed(weights, cross[:1], f"{ours}.cross.qkv")
        state |= packed(weights, cross[1:], f"{ours}.cross.kv")
    _take_output(weights, "decoder.output_projection.weight", state)
    return {
        "heads": settings["decoder_attention_heads"],
        "decoder_layers": depth,
        "norm": "post",
        "activation": ACTIVATION_NAMES[settings["activation_function"]],
        "norm_eps": 1e-5,
        "scale_embedding": settings["scale_embedding"],
        "embedding_norm": normed,
    }, state


def _gpt2(settings: Settings, weights: ForeignTensors) -> tuple[dict[str, Any], State]:
    inner = "decoder.transformer."
    state = {
        "target_embedding.weight": weights.take(f"{inner}wte.weight"),
        "positions.table": weights.take(f"{inner}wpe.weight"),
    }
    depth = weights.count(f"{inner}h.")
    for layer in range(depth):
        theirs, ours = f"{inner}h.{layer}", f"decoder.blocks.{layer}"
        masks = itertools.product(("attn", "crossattention"), ("bias", "masked_bias"))
        weights.skip([f"{theirs}.{part}.{name}" for part, name in masks])  # buffers of old files
        state |= weights.modules(theirs, ours, GPT2["norms"])
        taken = weights.modules(theirs, ours, GPT2["linear"])
        state |= {n: t.T if n.endswith(".weight") else t for n, t in taken.items()}
    state |= weights.module(f"{inner}ln_f", "decoder.norm")
    _take_output(weights, "decoder.lm_head.weight", state)
    return {
        "heads": settings["n_head"],
        "decoder_layers": depth,
        "norm": "pre",
        "activation": ACTIVATION_NAMES[settings["activation_function"]],
        "norm_eps": settings["layer_norm_epsilon"],
        "scale_embedding": False,
    }, state


DECODERS = {"gpt2": (keys("hf gpt2"), _gpt2), "trocr": (keys("hf trocr"), _trocr)}


def _take_output(weights: ForeignTensors, theirs: str, state: State) -> None:
    """Take the output layer, unless it is the embedding once more."""
    if theirs in weights:
        output = weights.take(theirs)
        if not torch.equal(output, state["target_embedding.weight"]):
            state["output.weight"] = output


def sinusoids(length: int, dim: int) -> Tensor:
    """Sines in front and cosines behind, with the wavelengths of tensor2tensor, as TrOCR has them.

    They reach their largest in the last dimension, while those of `nn/layers/positions.py` do not.
    """
    half = dim // 2
    factor = math.log(10000) / (half - 1)
    frequencies = torch.exp(torch.arange(half, dtype=torch.int64).float() * -factor)
    angles = torch.arange(length, dtype=torch.int64).float()[:, None] * frequencies[None]
    table = torch.cat((angles.sin(), angles.cos()), dim=1)
    return torch.cat((table, torch.zeros(length, dim - 2 * half)), dim=1)
