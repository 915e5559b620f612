"""Hugging Face's MarianMTModel, the form of the OPUS-MT models, to our Transformer and back.

Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in C++"; Tiedemann and
Thottingal 2020, "OPUS-MT". What differs from the paper's Transformer: the sinusoids stand in
halves, the feed-forward activation is swish (SiLU), and the logits get a bias.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert.converter import ACTIVATION_NAMES, keys, name_map
from manyheads.models.convert.foreign import ForeignTensors, Settings, State, Tensors
from manyheads.models.transformer import TransformerConfig
from manyheads.nn.layers.positions import sinusoid_halves

ACTIVATIONS = {name: ACTIVATION_NAMES[name] for name in ("swish", "silu", "relu", "gelu")}
MODULES = name_map("hf marian")
KEYS: dict[str, str] = MODULES.pop("config")
ATTENTIONS: dict[str, dict[str, str]] = MODULES.pop("attentions")
FREE = {*KEYS.values(), "vocabulary", "target_vocabulary", "output_bias"}
IDS = ("pad_token_id", "decoder_start_token_id", "eos_token_id")
NORM_EPS = 1e-5  # fixed in their model
NEVER = -1e4  # logit of a token that is never generated; as -inf in a softmax, also in 16 bits
LONGEST = 1 << 16  # positions: a table of them is made


def _check(about: Settings) -> None:
    kind = about.get("model_type")
    if kind != "marian":
        raise UsageError(
            f"The configuration has model_type {kind!r}, not 'marian': only translation models of "
            "Hugging Face's Marian kind (such as Helsinki-NLP/opus-mt-*) can be converted."
        )
    for key in ("attention_heads", "ffn_dim"):
        encoder, decoder = about[f"encoder_{key}"], about[f"decoder_{key}"]
        if encoder != decoder:
            raise UsageError(
                f"This Hugging Face Marian model has encoder_{key} {encoder} and decoder_{key} "
                f"{decoder}; Transformer has the same in both."
            )
    length = about["max_position_embeddings"]
    if not isinstance(length, int) or length > LONGEST:
        raise UsageError(
            f"This Hugging Face Marian model has max_position_embeddings {length!r}; at most "
            f"{LONGEST:,} are supported."
        )
    for key in IDS:
        if not isinstance(about[key], int):
            raise UsageError(
                f"This Hugging Face Marian model has {key} {about[key]!r}; it must be one number."
            )
    if about["share_encoder_decoder_embeddings"] and not about["tie_word_embeddings"]:
        raise UsageError(
            "This Hugging Face Marian model shares its embeddings "
            "(share_encoder_decoder_embeddings) without tying them (tie_word_embeddings): "
            "versions of transformers read this differently, so it cannot be converted."
        )


@keys("hf marian", _check).reader
def read(about: Settings, weights: ForeignTensors) -> tuple[TransformerConfig, State]:
    """Map a MarianMTModel to our Transformer; what it drops in training is not told apart.

    From the content of config.json, and of model.safetensors or pytorch_model.bin; matrices that
    are tied are in the state dict once.

    Raises:
        UsageError: not a Marian model; a part has no equivalent here, or one is missing.
    """
    state: State = {}
    tied = about["tie_word_embeddings"]
    shared = about["share_encoder_decoder_embeddings"]
    source = ["model.shared.weight", "model.encoder.embed_tokens.weight"]
    target = ["model.decoder.embed_tokens.weight"]
    output = ["lm_head.weight"]
    if tied and shared:
        state["embedding.weight"] = _one_of(weights, [*source, *target, *output])
    else:
        state["embedding.weight"] = _one_of(weights, source[1:])
        state["target_embedding.weight"] = _one_of(weights, [*target, *(output if tied else [])])
        if not tied:
            state["output.weight"] = _one_of(weights, output)
    bias = weights.take("final_logits_bias")[0] if "final_logits_bias" in weights else None
    if bias is not None and bias.any():
        state["output.bias"] = bias
    for name in ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"):
        if name in weights:  # some files hold the table of positions: that of the formula
            table = weights.take(name)
            formula = sinusoid_halves(len(table), about["d_model"])
            if not torch.allclose(table.float(), formula, atol=1e-3):  # of fp16
                raise UsageError(
                    f"This Hugging Face Marian model has its own positions in {name}; only "
                    "sinusoids, which follow a formula, can be converted."
                )
    for theirs, ours in _pairs(about, MODULES):
        state |= weights.module(theirs, ours)
    for theirs, ours in _pairs(about, ATTENTIONS):
        for part in ("weight", "bias"):
            packed = [weights.take(f"{theirs}.{x}_proj.{part}") for x in "qkv"]
            state[f"{ours}.qkv.{part}"] = torch.cat(packed)
    targets = len(state.get("target_embedding.weight", state["embedding.weight"]))
    smaller = min(len(state["embedding.weight"]), targets)
    for key in IDS:
        if not 0 <= about[key] < smaller:
            raise UsageError(
                f"This Hugging Face Marian model has {key} {about[key]}, but only {smaller} "
                "tokens: its configuration and its tensors do not belong together."
            )
    return TransformerConfig(
        **{ours: about[theirs] for theirs, ours in KEYS.items()},
        vocabulary=len(state["embedding.weight"]),
        target_vocabulary=None if shared else targets,
        output_bias="output.bias" in state,
        activation=ACTIVATIONS[about["activation_function"]],
        positions="sinusoidal-halves",
        norm_eps=NORM_EPS,
    ), state


def write(config: TransformerConfig, state: Tensors) -> tuple[dict[str, Any], State]:
    """Map our Transformer to a MarianMTModel.

    Sinusoids of the paper's order become halves: every matrix that touches the width of the model
    has its rows or columns put in that order too, so that the answers stay the same.

    A tied matrix may be in the state once or at each of its names. Returned is the content of
    config.json, and of model.safetensors by the names that Hugging Face stores.

    Raises:
        UsageError: the model has a part that Marian has not.
    """
    about = settings(config)
    if config.positions == "sinusoidal":
        state = _in_halves(state, config.dim)
    tensors: State = {}
    if about["share_encoder_decoder_embeddings"]:
        tensors["model.shared.weight"] = state["embedding.weight"]
    else:
        tensors["model.encoder.embed_tokens.weight"] = state["embedding.weight"]
        tensors["model.decoder.embed_tokens.weight"] = state["target_embedding.weight"]
        if not config.tied:
            tensors["lm_head.weight"] = state["output.weight"]
    zeros = state["embedding.weight"].new_zeros(about["decoder_vocab_size"])
    tensors["final_logits_bias"] = state.get("output.bias", zeros)[None]
    for part in ("weight", "bias"):
        for theirs, ours in _pairs(about, MODULES):
            tensors[f"{theirs}.{part}"] = state[f"{ours}.{part}"]
        for theirs, ours in _pairs(about, ATTENTIONS):
            for x, tensor in zip("qkv", state[f"{ours}.qkv.{part}"].chunk(3), strict=True):
                tensors[f"{theirs}.{x}_proj.{part}"] = tensor.clone()
    return about, {name: tensor.contiguous() for name, tensor in tensors.items()}


def pad_last(
    config: TransformerConfig, state: Tensors
) -> tuple[TransformerConfig, State, list[int]]:
    """Let the padding be the last token and, with an embedding of zeros, the start of a target.

    So it is in Marian's own models, and CTranslate2's converter relies on it: it cuts off the last
    row and starts from zeros. The answers stay the same: the embedding of our start token is
    subtracted from all rows of its table, which adds one number to all logits, and added again
    behind it, by the biases of the first attention and of its output. The padding, whose row a
    decoder never reads, gets a logit that is never chosen.

    Returned are the new Config and state, and the old id of each new one. With a vocabulary for
    each language nothing changes.
    """
    size = config.vocabulary
    if config.target_vocabulary is not None or config.pad == config.start == size - 1:
        return config, dict(state), list(range(size))
    order = [token for token in range(size) if token != config.pad] + [config.pad]
    shifted = "embedding" if config.tied else "target_embedding"
    tables = [shifted] if config.tied else ["embedding", shifted, "output"]
    changed = {f"{name}.weight": state[f"{name}.weight"][order].float() for name in tables}
    start = state[f"{shifted}.weight"][config.start].double()
    table = (changed[f"{shifted}.weight"].double() - start).float()
    table[-1] = 0.0
    changed[f"{shifted}.weight"] = table
    start = start * (config.dim**0.5 if config.scale_embedding else 1.0)
    for side in ("encoder", "decoder") if config.tied else ("decoder",):
        attention = f"{side}.blocks.0.attention"
        weight = state[f"{attention}.qkv.weight"].double()
        for name, added in (("qkv", weight @ start), ("out", start)):
            bias = f"{attention}.{name}.bias"
            changed[bias] = (state[bias].double() + added).float()
    changed["output.bias"] = state.get("output.bias", torch.zeros(size))[order].float()
    changed["output.bias"][-1] = NEVER
    new = {old: token for token, old in enumerate(order)}
    config = replace(config, pad=size - 1, start=size - 1, end=new[config.end], output_bias=True)
    return config, dict(state) | changed, order


def settings(config: TransformerConfig) -> dict[str, Any]:
    """Write our Config as the content of config.json.

    Raises:
        UsageError: the model has a part that Marian has not.
    """
    # Every part but those of this table must be at its default.
    allowed: dict[str, tuple[Any, ...]] = {
        "norm": ("post",),
        "positions": ("sinusoidal", "sinusoidal-halves"),
        "activation": tuple(ACTIVATIONS.values()),
        "norm_eps": (NORM_EPS,),
    }
    for field in fields(config):
        value = getattr(config, field.name)
        possible = allowed.get(field.name, (field.default,))
        if field.name not in FREE and value not in possible:
            raise UsageError(
                f"model.{field.name} is {value!r}; Marian's format has only "
                f"{' or '.join(map(repr, dict.fromkeys(possible)))}. "
                "Train with that to publish a model in this format."
            )
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "dtype": "float32",  # to compute in, however the weights are stored
        "vocab_size": config.vocabulary,
        "decoder_vocab_size": config.target_vocabulary or config.vocabulary,
        **{theirs: getattr(config, ours) for theirs, ours in KEYS.items()},
        "activation_function": "swish" if config.activation == "silu" else config.activation,
        "activation_dropout": config.dropout,
        "share_encoder_decoder_embeddings": config.tied and config.target_vocabulary is None,
        "bos_token_id": None,
        "forced_eos_token_id": None,  # a matter of search, but theirs is 0 if nothing is said
    }


def _pairs(about: Settings, modules: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """Name these modules of every layer, in their model and in ours."""
    for side, names in modules.items():
        for layer in range(about[f"{side}_layers"]):
            for theirs, ours in names.items():
                yield f"model.{side}.layers.{layer}.{theirs}", f"{side}.blocks.{layer}.{ours}"


def _one_of(weights: ForeignTensors, names: list[str]) -> Tensor:
    """Take a matrix that files hold under one of several names, or under more, equal."""
    present = [name for name in names if name in weights] or names[:1]
    first, *others = [weights.take(name) for name in present]
    for name, other in zip(present[1:], others, strict=True):
        if not torch.equal(first, other):
            raise UsageError(
                f"This Hugging Face Marian model ties {present[0]} and {name} in its "
                "configuration, but its file holds different values for them."
            )
    return first


def _in_halves(state: Tensors, dim: int) -> State:
    """Put the width of the model in the order of `sinusoid_halves`."""
    order = torch.cat((torch.arange(0, dim, 2), torch.arange(1, dim, 2)))
    result = {}
    for name, tensor in state.items():
        module = name.split(".")[-2]
        if module in ("embedding", "target_embedding", "expand", "qkv", "output"):  # read the width
            result[name] = tensor[:, order] if tensor.ndim == 2 else tensor
        else:  # out, contract, norm: write it
            result[name] = tensor[order]
    return result
