"""Hugging Face's CLIP and SigLIP, images and texts -> our Matcher, by the names of stored files.

Their image encoders alone are in `vit_weights.py`. Files of version 4 of the library and of version
5 differ in a prefix.
"""

from typing import Any

import torch

from manyheads.errors import UsageError
from manyheads.models.convert.converter import ACTIVATION_NAMES, Converter, keys
from manyheads.models.convert.foreign import ForeignTensors, Settings, State, Tensors
from manyheads.models.convert.layers import encoder_blocks
from manyheads.models.convert.vit_weights import CLIP, clip, siglip
from manyheads.models.matcher import MatcherConfig
from manyheads.models.vit import VitConfig

CLIP_TEXT, SIGLIP_TEXT = keys("hf clip text"), keys("hf siglip text")
OLD_END = 2
IMAGE_TENSORS = ("vision_model.", "visual_projection.")

# What a whole model's configuration says of images and of texts.
Checked = tuple[Settings, Settings]


def _clip_matcher(about: Checked, tensors: Tensors) -> tuple[MatcherConfig, State]:
    """Map a CLIPModel: a causal text encoder, read at the first end token.

    A configuration of before 2023 says 2 in place of the end token, which then is the last of all.
    """
    image, state = _image_tower(clip, about[0], tensors)
    weights = _text_tensors(tensors, "Hugging Face CLIP")
    fields, texts = _texts(about[1], weights)
    texts["projection.weight"] = weights.take("text_projection.weight")
    state["log_scale"] = weights.take("logit_scale").reshape(())
    weights.finish()
    end = about[1]["eos_token_id"]
    config = MatcherConfig(
        **fields,
        image=image,
        embedding=len(texts["projection.weight"]),
        causal=True,
        text_pool="end",
        start=about[1]["bos_token_id"],
        end=fields["vocabulary"] - 1 if end == OLD_END else end,
    )
    CLIP_TEXT.compare(about[1], config)
    return config, state | {f"texts.{name}": tensor for name, tensor in texts.items()}


def _siglip_matcher(about: Checked, tensors: Tensors) -> tuple[MatcherConfig, State]:
    """Map a SiglipModel, whose images have no projection and whose texts are read at their end.

    Texts are padded to one length, and the padding is read with them.
    """
    image, state = _image_tower(siglip, about[0], tensors)
    if image.pool != "map":
        raise UsageError(
            "This Hugging Face SigLIP has no attention pooling (vision_use_head), so it gives no "
            "vector for an image."
        )
    state["images.head.weight"] = torch.eye(image.dim)
    state["images.head.bias"] = torch.zeros(image.dim)
    weights = _text_tensors(tensors, "Hugging Face SigLIP")
    fields, texts = _texts(about[1], weights)
    texts |= weights.module("text_model.head", "projection")
    for theirs, ours in (("logit_scale", "log_scale"), ("logit_bias", "bias")):
        state[ours] = weights.take(theirs).reshape(())
    weights.finish()
    config = MatcherConfig(
        **fields,
        image=image,
        embedding=len(texts["projection.weight"]),
        text_pool="last",
        projection_bias=True,
        score_bias=float(state["bias"]),
        end=about[1]["eos_token_id"],
    )
    SIGLIP_TEXT.compare(about[1], config)
    if config.embedding != image.dim:
        raise UsageError(
            f"This Hugging Face SigLIP projects texts to {config.embedding} numbers, but its "
            f"images have {image.dim}: they cannot be compared."
        )
    return config, state | {f"texts.{name}": tensor for name, tensor in texts.items()}


clip_matcher = Converter(lambda about: (clip.check(about), CLIP_TEXT(about)), _clip_matcher)
siglip_matcher = Converter(lambda about: (siglip.check(about), SIGLIP_TEXT(about)), _siglip_matcher)


def _image_tower(
    convert: Converter[VitConfig], settings: Settings, tensors: Tensors
) -> tuple[VitConfig, State]:
    own = {n: t for n, t in tensors.items() if n.startswith(IMAGE_TENSORS)}
    image, state = convert(settings, own)
    return image, {f"images.{name}": tensor for name, tensor in state.items()}


def _text_tensors(tensors: Tensors, library: str) -> ForeignTensors:
    rest = {n: t for n, t in tensors.items() if not n.startswith(IMAGE_TENSORS)}
    return ForeignTensors(rest, library)


def _texts(settings: Settings, weights: ForeignTensors) -> tuple[dict[str, Any], State]:
    inner = "text_model."
    state = {
        "embedding.weight": weights.take(f"{inner}embeddings.token_embedding.weight"),
        "positions.table": weights.take(f"{inner}embeddings.position_embedding.weight"),
    }
    depth = encoder_blocks(weights, f"{inner}encoder.layers.", state, CLIP)
    state |= weights.module(f"{inner}final_layer_norm", "encoder.norm")
    vocabulary, dim = state["embedding.weight"].shape
    return {
        "vocabulary": vocabulary,
        "dim": dim,
        "layers": depth,
        "heads": settings["num_attention_heads"],
        "ffn_dim": len(state["encoder.blocks.0.feedforward.expand.bias"]),
        "activation": ACTIVATION_NAMES[settings["hidden_act"]],
        "norm_eps": settings["layer_norm_eps"],
        "positions": "learned",
        "max_length": len(state["positions.table"]),
        "scale_embedding": False,
        "scale_limit": 0.0,
        "dropout": 0.0,
        "pad": settings["pad_token_id"],
    }, state
