"""Vision Transformers of timm, Hugging Face and torchvision -> our Vit, our Deit, or our Hybrid.

All have one encoder, which `_take` reads by the names of `converters.toml`; they differ in the
tokens in front, in the pool and in the heads.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert.converter import (
    ACTIVATION_NAMES,
    Made,
    Names,
    converter,
    keys,
    name_map,
)
from manyheads.models.convert.foreign import ForeignTensors, Settings, State
from manyheads.models.convert.layers import (
    encoder_blocks,
    grid_positions,
    height_width,
    image_size,
    packed,
    patches,
)
from manyheads.models.deit import DeitConfig
from manyheads.models.hybrid import STEM_STRIDE, HybridConfig
from manyheads.models.image_encoder import Pool
from manyheads.models.vit import VitConfig

V = TypeVar("V", bound=VitConfig)

LAYER_SCALE = 1e-5  # at first, where a file does not say it: of use only to train anew
CLIP, SIGLIP_POOL = name_map("hf clip"), name_map("hf siglip")["pool"]
# Convolutions of a residual block with the norms behind them, theirs and ours.
RESIDUAL = {"1": "reduce", "2": "mix", "3": "expand"}
BACKBONE = "patch_embed.backbone"


class _Taken(NamedTuple):
    """The encoder as it was taken."""

    state: State
    positions: Tensor
    fields: dict[str, Any]  # of the Config, as far as the encoder's tensors show them
    gated: bool


def _take(
    weights: ForeignTensors,
    inner: str,
    names: Names,
    tokens: Sequence[str],
    ours: str = "patches.project",
    gated: bool | None = None,
    scaled: bool | None = None,
) -> _Taken:
    """Take patches, the tokens in front of them, positions and blocks; `inner` begins all names.

    Tensors show whether a norm stands in front of the blocks, and then patches have no bias; and,
    unless it is said, whether feed-forward parts are SwiGLU (`gated`, with gate and values in one),
    and whether branches have gains (`scaled`).
    """
    layers = f"{inner}{names['layers']}"
    normed = f"{inner}{names.get('before')}.weight" in weights
    if scaled is None:
        scaled = "gains" in names and f"{layers}0.{names['gains'][0]}" in weights
    if gated is None:
        both, last = (weights.shape(f"{layers}0.{n}.weight") for n in names.get("gated", ("", "")))
        gated = bool(both) and both[:1] == tuple(2 * each for each in last[1:])
    kernel, state = patches(weights, f"{inner}{names['patches']}", ours, bias=not normed)
    front = [weights.take(f"{inner}{each}") for each in tokens]
    if front:
        state["pool.token"] = torch.cat([each.reshape(1, -1, len(kernel)) for each in front], dim=1)
    positions = weights.take(f"{inner}{names['positions']}").flatten(0, -2)
    if normed:
        state |= weights.module(f"{inner}{names['before']}", "embedding_norm")
    depth = encoder_blocks(weights, layers, state, names, gated=gated, scaled=scaled)
    fields = {
        "channels": kernel.shape[1],
        "patch": kernel.shape[2],
        "dim": kernel.shape[0],
        "layers": depth,
        "ffn_dim": len(state["encoder.blocks.0.feedforward.expand.bias"]),
        "embedding_norm": normed,
        "patch_bias": not normed,
        "layer_scale": LAYER_SCALE if scaled else 0.0,
    }
    return _Taken(state, positions, fields, gated)


def _made(kind: type[V], taken: _Taken, extra: int, fields: Settings) -> tuple[V, State]:
    """Make the Config, and place positions behind `extra` tokens."""
    state = taken.state
    classes = len(state["head.bias"]) if "head.bias" in state else 0
    config = kind(**taken.fields | {"classes": classes, **fields})
    state["positions.table"] = grid_positions(taken.positions, config.grid, extra)
    return config, state


# --- Hugging Face: with a head or without -------------------------------------------------------


def _of_hf(settings: Settings) -> dict[str, Any]:
    """Read what no tensor shows: the image size, heads, the activation and epsilon."""
    return {
        **height_width(settings["image_size"]),
        "heads": settings["num_attention_heads"],
        "activation": ACTIVATION_NAMES[settings["hidden_act"]],
        "norm_eps": settings["layer_norm_eps"],
    }


def _plain(settings: Settings, weights: ForeignTensors, names: Names) -> Made[VitConfig]:
    """Map a ViT, a DeiT or a DINOv2; the pooler of a ViTModel is a tanh layer.

    A DeiT with both heads is our Deit. With one head or none, which read the class token alone, the
    distillation token is a register. DINOv2's registers have no positions.
    """
    inner, tokens = weights.within(names["within"]), [*names["tokens"]]
    placed, scaled = len(tokens), "gains" in names
    if f"{inner}{names.get('registers')}" in weights:
        tokens.append(names["registers"])
    gated = settings.get("use_swiglu_ffn", False)
    taken = _take(weights, inner, names, tokens, gated=gated, scaled=scaled)
    state, fields = taken.state, _of_hf(settings)
    weights.skip([f"{inner}embeddings.mask_token"])  # of use in pre-training only
    state |= weights.module(f"{inner}layernorm", "encoder.norm")
    if f"{inner}pooler.dense.weight" in weights:
        state |= weights.module(f"{inner}pooler.dense", "representation.0")
        fields["representation"] = len(state["representation.0.bias"])
    if "cls_classifier.weight" in weights:
        state |= weights.module("cls_classifier", "head")
        state |= weights.module("distillation_classifier", "teacher_head")
        return _made(DeitConfig, taken, placed, fields)
    if "classifier.weight" in weights:
        state |= weights.module("classifier", "head")
    if scaled:
        fields["pool"] = "class-and-mean" if "head.weight" in state else "class"
        fields["layer_scale"] = settings["layerscale_value"] or LAYER_SCALE
        fields |= {"activation": "swiglu"} if gated else {}
    registers = state["pool.token"].shape[1] - 1
    config, state = _made(VitConfig, taken, placed, fields | {"registers": registers})
    table, between = state["positions.table"], registers + 1 - placed
    zeros = table.new_zeros(between, config.dim)
    state["positions.table"] = torch.cat((table[:placed], zeros, table[placed:]))
    return config, state


vit_of_hf, deit_of_hf = converter("hf vit", _plain), converter("hf deit", _plain)
dinov2_of_hf = converter("hf dinov2", _plain)


@keys("hf clip").reader
def clip(settings: Settings, weights: ForeignTensors) -> Made[VitConfig]:
    """Map a CLIPVisionModel, with its projection or without, or a CLIPForImageClassification.

    The classifier reads the mean of the patches as they leave the last block, without the norm.
    The projection is a head without a bias.
    """
    inner = _without_texts(weights)
    taken = _take(weights, inner, CLIP, CLIP["tokens"])
    state, parts = taken.state, {"pool": "class", "pool_norm": "after"}
    if "classifier.weight" in weights:
        state |= weights.module("classifier", "head")
        weights.skip([f"{inner}post_layernorm.weight", f"{inner}post_layernorm.bias"])
        parts = {"pool": "patch-mean", "pool_norm": "none"}
    else:
        state |= weights.module(f"{inner}post_layernorm", "pool_norm")
        if "visual_projection.weight" in weights:
            weight = weights.take("visual_projection.weight")
            state |= {"head.weight": weight, "head.bias": weight.new_zeros(len(weight))}
    return _made(VitConfig, taken, 1, _of_hf(settings) | parts)


@keys("hf siglip").reader
def siglip(settings: Settings, weights: ForeignTensors) -> Made[VitConfig]:
    """Map a SiglipVisionModel, which pools by attention, or a SiglipForImageClassification.

    The classifier reads the mean of the patches, and not the pool that is stored with it.
    """
    inner = _without_texts(weights)
    taken = _take(weights, inner, CLIP, ())
    state = taken.state
    state |= weights.module(f"{inner}post_layernorm", "encoder.norm")
    attends = f"{inner}head.probe" in weights
    pool: State = {}
    if attends:  # by a learned query, and torch's own attention
        pool["pool.query"] = weights.take(f"{inner}head.probe")
        for part in ("weight", "bias"):
            theirs = f"{inner}head.attention.in_proj_{part}"
            pool[f"pool.attention.qkv.{part}"] = weights.take(theirs)
        pool |= weights.modules(f"{inner}head", "pool", SIGLIP_POOL)
    if "classifier.weight" in weights:
        state |= weights.module("classifier", "head")
        attends = False
    else:
        state |= pool
    return _made(VitConfig, taken, 0, _of_hf(settings) | {"pool": "map" if attends else "mean"})


def _without_texts(weights: ForeignTensors) -> str:
    """Return what names of an image encoder begin with; refuse a text encoder beside it."""
    if weights.within(["text_model.", ""]) or weights.within(["text_projection.", ""]):
        raise UsageError(
            f"This {weights.library} model has a text encoder beside its image encoder."
        )
    return weights.within(CLIP["within"])


# --- timm, and what is read through its names ---------------------------------------------------


def _of_timm(settings: Settings, taken: _Taken) -> dict[str, Any]:
    """Read what no tensor shows: heads, epsilon, and the activation unless it is a gate."""
    named = "swiglu" if taken.gated else ACTIVATION_NAMES[settings["act_layer"] or "gelu"]
    heads, eps = settings["num_heads"], settings["norm_eps"]
    return {"heads": heads, "activation": named, "norm_eps": eps}


def _deit(settings: Settings, weights: ForeignTensors, names: Names) -> Made[DeitConfig]:
    """Map a VisionTransformerDistilled; without the distillation token it is a plain ViT."""
    taken = _take(weights, "", names, names["distilled"])
    for theirs, ours in names["heads"].items():
        taken.state.update(weights.module(theirs, ours))
    size = height_width(settings["img_size"])
    return _made(DeitConfig, taken, 2, size | _of_timm(settings, taken))


def _vit(settings: Settings, weights: ForeignTensors, names: Names) -> Made[VitConfig]:
    """Map a VisionTransformer: any pool but the maximum, with a head or without.

    So CLIP's, SigLIP's, DINOv2's and DeiT III's encoders are read: with registers, LayerScale, a
    norm in front of the stack (and then no bias of the patches), attention pooling and SwiGLU.

    Behind a ResNetV2 with group norm and standardised filters (timm's `HybridEmbed`) it becomes a
    Hybrid. What the tensors say is checked against the settings; `num_groups` in them is of a
    hybrid's norms, and `wanted_size`, the user's image size, may explain a grid that is not square.
    """
    hybrid, before = _backbone(weights)
    has_token, after = "cls_token" in weights, "fc_norm.weight" in weights
    tokens = [name for name in names["tokens"] if name in weights]
    ours = "patches.patches.project" if hybrid else "patches.project"
    taken = _take(weights, "", names, tokens, ours)
    state = taken.state
    state |= before
    extra = state["pool.token"].shape[1] if tokens else 0
    state |= (
        weights.module("fc_norm", "pool_norm") if after else weights.module("norm", "encoder.norm")
    )
    pools = "attn_pool.latent" in weights
    if pools:
        state["pool.query"] = weights.take("attn_pool.latent")
        state |= packed(weights, ["attn_pool.q", "attn_pool.kv"], "pool.attention.qkv")
        state |= weights.modules("attn_pool", "pool", names["pool"])
    pool = pool_name(settings["global_pool"], has_token, after, pools)
    representation = None
    if "pre_logits.fc.weight" in weights:
        state |= weights.module("pre_logits.fc", "representation.0")
        representation = len(state["representation.0.bias"])
    if "head.weight" in weights:
        state |= weights.module("head", "head")
    stride = STEM_STRIDE * 2 ** max(len(hybrid["depths"]) - 1, 0) if hybrid else 1
    stated = settings["img_size"], settings.get("wanted_size")
    size = image_size(len(taken.positions), extra, stride * taken.fields["patch"], stated)
    fields = (
        height_width(size)
        | _of_timm(settings, taken)
        | {
            "pool": pool,
            "registers": extra - has_token,
            "pool_norm": "after" if after else "before",
            "representation": representation,
        }
    )
    if taken.gated and settings["act_layer"] not in (None, "silu", "swish"):
        raise UsageError(
            f"This timm ViT has gates of act_layer {settings['act_layer']!r}; only 'silu' is "
            "supported."
        )
    if taken.fields["layer_scale"]:
        fields["layer_scale"] = settings.get("init_values") or LAYER_SCALE
    # With no_embed_class the tokens in front have no positions.
    if hybrid:
        hybrid["norm_groups"] = settings["num_groups"]
        return _made(HybridConfig, taken, extra, fields | hybrid)
    return _made(VitConfig, taken, extra, fields)


def _backbone(weights: ForeignTensors) -> tuple[dict[str, Any], State]:
    """Take the ResNet, if there is one; return what HybridConfig says of it, and its state."""
    whole = f"{BACKBONE}.stem.conv.weight" in weights
    if not whole and f"{BACKBONE}.conv.weight" not in weights:
        return {}, {}
    stem = f"{BACKBONE}.stem" if whole else BACKBONE
    state = weights.convolution(f"{stem}.conv", "patches.stem.convolution")
    state |= weights.module(f"{stem}.norm", "patches.stem.norm")
    depths: list[int] = []
    for stage in range(weights.reach(BACKBONE + ".stages.{}.blocks.0.conv1.weight")):
        depths.append(weights.count(f"{BACKBONE}.stages.{stage}.blocks."))
        for block in range(depths[-1]):
            theirs = f"{BACKBONE}.stages.{stage}.blocks.{block}"
            ours = f"patches.stages.{stage}.{block}"
            pairs = [(f"conv{n}", f"norm{n}", part) for n, part in RESIDUAL.items()]
            if f"{theirs}.downsample.conv.weight" in weights:
                pairs.append(("downsample.conv", "downsample.norm", "shortcut"))
            for convolution, norm, part in pairs:
                state |= weights.convolution(
                    f"{theirs}.{convolution}", f"{ours}.{part}.convolution"
                )
                state |= weights.module(f"{theirs}.{norm}", f"{ours}.{part}.norm")
    width, channels = state["patches.stem.convolution.weight"].shape[:2]
    return {"depths": tuple(depths), "stem_width": width, "channels": channels}, state


def pool_name(name: str | None, has_class_token: bool, normed_after: bool, attends: bool) -> Pool:
    """Say how tokens become one vector; where nobody does, the norm's place and the token do."""
    if name is None:
        name = "token" if has_class_token and not normed_after else "avg"
    if name == "map" and attends and not has_class_token:
        return "map"
    if name == "token" and has_class_token and not attends:
        return "class"
    if name == "avg" and not attends:
        return "patch-mean" if has_class_token else "mean"
    raise UsageError(
        f"This timm model has global_pool {name!r} {'with' if has_class_token else 'without'} a "
        f"class token and {'with' if attends else 'without'} a learned query; Vit pools by class "
        "token ('token'), by mean ('avg') or by a learned query alone ('map')."
    )


vit_of_timm, deit_of_timm = converter("timm vit", _vit), converter("timm deit", _deit)

# Modules of a block, theirs and timm's. The two layers of an MLP were once named otherwise.
TORCHVISION = {"ln_1": "norm1", "self_attention.out_proj": "attn.proj", "ln_2": "norm2"}
MLPS = (
    {"mlp.0": "mlp.fc1", "mlp.3": "mlp.fc2"},
    {"mlp.linear_1": "mlp.fc1", "mlp.linear_2": "mlp.fc2"},
)


@keys("torchvision vit").reader
def vit_of_torchvision(settings: Settings, weights: ForeignTensors) -> Made[VitConfig]:
    """Map a VisionTransformer, whose heads are 64 wide unless `num_heads` is said.

    It goes through the names that timm has for the same.
    """
    named = {
        "cls_token": weights.take("class_token"),
        "pos_embed": weights.take("encoder.pos_embedding"),
        **weights.module("conv_proj", "patch_embed.proj"),
        **weights.module("encoder.ln", "norm"),
        **weights.module("heads.head", "head"),
    }
    if "heads.pre_logits.weight" in weights:
        named |= weights.module("heads.pre_logits", "pre_logits.fc")
    for layer in range(weights.reach("encoder.layers.encoder_layer_{}.ln_1.weight")):
        theirs, ours = f"encoder.layers.encoder_layer_{layer}", f"blocks.{layer}"
        mlp = MLPS[f"{theirs}.mlp.linear_1.weight" in weights]
        named |= weights.modules(theirs, ours, TORCHVISION | mlp)
        for part in ("weight", "bias"):
            named[f"{ours}.attn.qkv.{part}"] = weights.take(
                f"{theirs}.self_attention.in_proj_{part}"
            )
    dim = named["cls_token"].shape[-1]
    return vit_of_timm({**settings, "num_heads": settings["num_heads"] or max(dim // 64, 1)}, named)
