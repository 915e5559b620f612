"""Hugging Face's CLIP and SigLIP -> ours, by the names of their stored files.

The image encoder alone, or beside its text encoder: a matcher. Files of version 4 of the library
and of version 5 differ in a prefix.
"""

from typing import Any

import torch

from manyheads.errors import UsageError
from manyheads.models.convert.converter import ACTIVATION_NAMES, Converter, keys, name_map
from manyheads.models.convert.foreign import ForeignTensors, Settings, State, Tensors
from manyheads.models.convert.layers import encoder_blocks, grid_positions, hf_vit_shape, patches
from manyheads.models.matcher import MatcherConfig
from manyheads.models.vit import VitConfig

CLIP_IMAGE, CLIP_TEXT = keys("hf clip"), keys("hf clip text")
SIGLIP_IMAGE, SIGLIP_TEXT = keys("hf siglip"), keys("hf siglip text")
OLD_END = 2
IMAGE_TENSORS = ("vision_model.", "visual_projection.")
LAYER, POOL = name_map("hf clip"), name_map("hf siglip")
QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")


# What a whole model's configuration says of images and of texts.
Checked = tuple[Settings, Settings]


@CLIP_IMAGE.reader
def clip(settings: Settings, weights: ForeignTensors) -> tuple[VitConfig, State]:
    """Map a CLIPVisionModel, with its projection or without, or a CLIPForImageClassification.

    The classifier reads the mean of the patches as they leave the last block, without the norm.
    The projection is a head without a bias.
    """
    refuse_texts(weights)
    inner = weights.within(["vision_model.", ""])
    kernel, state = patches(weights, f"{inner}embeddings.patch_embedding", bias=False)
    state["pool.token"] = weights.take(f"{inner}embeddings.class_embedding")[None, None]
    positions = weights.take(f"{inner}embeddings.position_embedding.weight")
    state |= weights.module(f"{inner}pre_layrnorm", "embedding_norm")
    depth = encoder_blocks(weights, f"{inner}encoder.layers.", state, LAYER, QKV)
    parts: dict[str, Any] = {"pool": "class", "pool_norm": "after"}
    if "classifier.weight" in weights:
        state |= weights.module("classifier", "head")
        weights.skip([f"{inner}post_layernorm.weight", f"{inner}post_layernorm.bias"])
        parts = {"pool": "patch-mean", "pool_norm": "none"}
    else:
        state |= weights.module(f"{inner}post_layernorm", "pool_norm")
        if "visual_projection.weight" in weights:
            weight = weights.take("visual_projection.weight")
            state |= {"head.weight": weight, "head.bias": weight.new_zeros(len(weight))}
    config = VitConfig(
        **hf_vit_shape(settings, state, kernel, depth),
        **parts,
        embedding_norm=True,
        patch_bias=False,
    )
    state["positions.table"] = grid_positions(positions, config.grid, 1)
    return config, state


@SIGLIP_IMAGE.reader
def siglip(settings: Settings, weights: ForeignTensors) -> tuple[VitConfig, State]:
    """Map a SiglipVisionModel, which pools by attention, or a SiglipForImageClassification.

    The classifier reads the mean of the patches, and not the pool that is stored with it.
    """
    refuse_texts(weights)
    inner = weights.within(["vision_model.", ""])
    kernel, state = patches(weights, f"{inner}embeddings.patch_embedding")
    positions = weights.take(f"{inner}embeddings.position_embedding.weight")
    depth = encoder_blocks(weights, f"{inner}encoder.layers.", state, LAYER, QKV)
    state |= weights.module(f"{inner}post_layernorm", "encoder.norm")
    attends = f"{inner}head.probe" in weights
    pool: State = {}
    if attends:  # by a learned query, and torch's own attention
        pool["pool.query"] = weights.take(f"{inner}head.probe")
        for part in ("weight", "bias"):
            theirs = f"{inner}head.attention.in_proj_{part}"
            pool[f"pool.attention.qkv.{part}"] = weights.take(theirs)
        pool |= weights.modules(f"{inner}head", "pool", POOL)
    if "classifier.weight" in weights:
        state |= weights.module("classifier", "head")
        attends = False
    else:
        state |= pool
    config = VitConfig(
        **hf_vit_shape(settings, state, kernel, depth), pool="map" if attends else "mean"
    )
    state["positions.table"] = grid_positions(positions, config.grid, 0)
    return config, state


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


clip_matcher = Converter(lambda about: (CLIP_IMAGE(about), CLIP_TEXT(about)), _clip_matcher)
siglip_matcher = Converter(lambda about: (SIGLIP_IMAGE(about), SIGLIP_TEXT(about)), _siglip_matcher)


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
    depth = encoder_blocks(weights, f"{inner}encoder.layers.", state, LAYER, QKV)
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


def refuse_texts(weights: ForeignTensors) -> None:
    """Refuse a text encoder.

    Raises:
        UsageError: there is one.
    """
    if weights.within(["text_model.", ""]) or weights.within(["text_projection.", ""]):
        raise UsageError(
            f"This {weights.library} model has a text encoder beside its image encoder."
        )
