"""Hugging Face's CLIP and SigLIP, images and texts -> our Matcher, by the names of stored files.

Their image encoders alone are in `vit_weights.py`. Files of version 4 of the library and of version
5 differ in a prefix.
"""

from collections.abc import Callable
from typing import Any

import torch

from manyheads.errors import UsageError
from manyheads.models.convert.converter import ACTIVATION_NAMES, Converter, keys
from manyheads.models.convert.foreign import ForeignTensors, Settings, State, Tensors
from manyheads.models.convert.layers import encoder_blocks
from manyheads.models.convert.vit_weights import CLIP, clip, siglip
from manyheads.models.matcher import MatcherConfig
from manyheads.models.vit import VitConfig

OLD_END = 2
IMAGE_TENSORS = ("vision_model.", "visual_projection.")

# Takes what only one of them has, into the states of the whole and of its texts; returns fields of
# the Config.
Own = Callable[[Settings, ForeignTensors, VitConfig, State, State], dict[str, Any]]


def _clip(
    settings: Settings, weights: ForeignTensors, _image: VitConfig, state: State, texts: State
) -> dict[str, Any]:
    """Take a CLIPModel's: a causal text encoder, read at the first end token.

    A configuration of before 2023 says 2 in place of the end token, which then is the last of all.
    """
    texts["projection.weight"] = weights.take("text_projection.weight")
    state["log_scale"] = weights.take("logit_scale").reshape(())
    end = settings["eos_token_id"]
    end = len(texts["embedding.weight"]) - 1 if end == OLD_END else end
    return {"causal": True, "text_pool": "end", "start": settings["bos_token_id"], "end": end}


def _siglip(
    settings: Settings, weights: ForeignTensors, image: VitConfig, state: State, texts: State
) -> dict[str, Any]:
    """Take a SiglipModel's, whose images have no projection and whose texts are read at their end.

    Texts are padded to one length, and the padding is read with them.
    """
    if image.pool != "map":
        raise UsageError(
            "This Hugging Face SigLIP has no attention pooling (vision_use_head), so it gives no "
            "vector for an image."
        )
    state["images.head.weight"] = torch.eye(image.dim)
    state["images.head.bias"] = torch.zeros(image.dim)
    texts |= weights.module("text_model.head", "projection")
    for theirs, ours in (("logit_scale", "log_scale"), ("logit_bias", "bias")):
        state[ours] = weights.take(theirs).reshape(())
    if (embedding := len(texts["projection.weight"])) != image.dim:
        raise UsageError(
            f"This Hugging Face SigLIP projects texts to {embedding} numbers, but its "
            f"images have {image.dim}: they cannot be compared."
        )
    bias, end = float(state["bias"]), settings["eos_token_id"]
    return {"text_pool": "last", "projection_bias": True, "score_bias": bias, "end": end}


def _matcher(convert: Converter[VitConfig], name: str, take: Own) -> Converter[MatcherConfig]:
    """Make the converter of a whole model of that of its image encoder."""
    known = keys(name)

    def read(
        about: tuple[Settings, Settings], tensors: Tensors
    ) -> tuple[MatcherConfig, State]:  # of images and of texts
        own = {n: t for n, t in tensors.items() if n.startswith(IMAGE_TENSORS)}
        image, tower = convert(about[0], own)
        state = {f"images.{n}": tensor for n, tensor in tower.items()}
        weights = ForeignTensors({n: t for n, t in tensors.items() if n not in own}, known.kind)
        fields, texts = _texts(about[1], weights)
        fields |= take(about[1], weights, image, state, texts)
        weights.finish()
        config = MatcherConfig(**fields, image=image, embedding=len(texts["projection.weight"]))
        known.compare(about[1], config)
        return config, state | {f"texts.{n}": tensor for n, tensor in texts.items()}

    return Converter(lambda about: (convert.check(about), known(about)), read)


clip_matcher = _matcher(clip, "hf clip text", _clip)
siglip_matcher = _matcher(siglip, "hf siglip text", _siglip)


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
