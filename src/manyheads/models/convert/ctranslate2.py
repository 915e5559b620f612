"""Our Transformer as a CTranslate2 model, by its specifications (Klein et al. 2020, OpenNMT)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from manyheads.errors import UsageError, optional_import
from manyheads.models.transformer import TransformerConfig
from manyheads.nn.layers.positions import sinusoid_halves, sinusoids

ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "gelu-tanh": "GELUTanh",
    "quick-gelu": "GELUSigmoid",
    "silu": "SWISH",
    "swiglu": "SWISH",  # of the gate
}
FORMULAS = {"sinusoidal": sinusoids, "sinusoidal-halves": sinusoid_halves}

Tensors = Mapping[str, Tensor]
Array = NDArray[np.float32]


def library() -> Any:
    """Import CTranslate2.

    Raises:
        MissingExtraError: it is not installed.
    """
    with optional_import("ctranslate2", extra="ctranslate2"):
        import ctranslate2
    return ctranslate2


def to_ctranslate2(
    config: TransformerConfig,
    tensors: Tensors,
    source: Sequence[str],
    target: Sequence[str],
    *,
    positions: int,
) -> Any:
    """Describe a model to CTranslate2: a `TransformerSpec`, to be optimized and saved.

    All arrays are copies: CTranslate2 scales weights in place where it makes int8 of them.

    Args:
        config: of the model.
        tensors: its weights by name; a tied one under its first name.
        source: the tokens of the vocabulary, all different.
        target: those of the target.
        positions: tokens that a text may have; learned positions are as many as were learned.

    Raises:
        MissingExtraError: CTranslate2 is not installed.
        UsageError: it has no equivalent of a part of the model.
    """
    specs = library().specs
    if config.activation not in ACTIVATIONS:
        raise UsageError(
            f"CTranslate2 has no activation {config.activation!r}: it has {', '.join(ACTIVATIONS)}."
        )
    if config.attention != "softmax":
        raise UsageError(f"CTranslate2 has no attention {config.attention!r}: it has softmax.")
    rotary = config.positions == "rotary"
    if not rotary and config.positions not in (*FORMULAS, "learned", "none"):
        raise UsageError(
            f"CTranslate2 has no positions {config.positions!r}: it has "
            f"{', '.join(FORMULAS)}, learned, rotary, none."
        )
    shape = {
        "pre_norm": config.norm == "pre",
        "activation": specs.Activation[ACTIVATIONS[config.activation]],
        "ffn_glu": config.activation == "swiglu",
        # 0: all dimensions of a head, in pairs of neighbours
        "rotary_dim": 0 if rotary else None,
        "rotary_interleave": True,
    }
    parts = specs.transformer_spec
    spec = parts.TransformerSpec(
        parts.TransformerEncoderSpec(config.encoder_layers, config.heads, **shape),
        parts.TransformerDecoderSpec(config.decoder_layers, config.heads, **shape),
    )
    weights = _Weights(tensors)
    reads = weights["embedding.weight"]
    writes = weights.get("target_embedding.weight", reads)
    table = _positions(config, weights, positions)
    spec.encoder.embeddings[0].weight, spec.decoder.embeddings.weight = reads, writes
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = config.scale_embedding
        if table is None:  # an encoder's specification asks for them also where keys are turned
            vars(side).pop("position_encodings", None)
        else:
            side.position_encodings.encodings = table.copy()
    for number, layer in enumerate(spec.encoder.layer):
        weights.block(layer, f"encoder.blocks.{number}")
    for number, layer in enumerate(spec.decoder.layer):
        name = f"decoder.blocks.{number}"
        weights.block(layer, name)
        weights.cross(layer.attention, name)
    if config.norm == "pre":
        weights.norm(spec.encoder.layer_norm, "encoder.norm")
        weights.norm(spec.decoder.layer_norm, "decoder.norm")
    spec.decoder.projection.weight = weights.get("output.weight", writes)
    if config.output_bias:
        spec.decoder.projection.bias = weights["output.bias"]
    spec.register_source_vocabulary(list(source))
    spec.register_target_vocabulary(list(target))
    spec.config.decoder_start_token = spec.config.bos_token = target[config.start]
    spec.config.eos_token = target[config.end]
    spec.config.unk_token = target[config.pad]  # never read: all of a source is in the vocabulary
    spec.config.layer_norm_epsilon = config.norm_eps
    spec.validate()
    return spec


def _positions(config: TransformerConfig, weights: "_Weights", length: int) -> Array | None:
    """Return what is added to the vectors of tokens; None where nothing is."""
    if config.positions == "learned":
        return weights["positions.table"]
    if config.positions == "rotary":
        return None
    if config.positions == "none":
        return np.zeros((length, config.dim), dtype=np.float32)
    return FORMULAS[config.positions](length, config.dim).numpy()


class _Weights:
    """Copies of tensors, put where a specification asks for them."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors

    def __getitem__(self, name: str) -> Array:
        return self.tensors[name].detach().to("cpu", torch.float32).numpy().copy()

    def get(self, name: str, tied: Array) -> Array:
        return self[name] if name in self.tensors else tied.copy()

    def block(self, layer: Any, name: str) -> None:
        self.linear(layer.self_attention.linear[0], f"{name}.attention.qkv")
        self.linear(layer.self_attention.linear[1], f"{name}.attention.out")
        self.norm(layer.self_attention.layer_norm, f"{name}.around_attention.norm")
        expand = f"{name}.feedforward.expand"
        if f"{name}.feedforward.gate.weight" in self.tensors:
            self.linear(layer.ffn.linear_0_noact, expand)
            expand = f"{name}.feedforward.gate"
        self.linear(layer.ffn.linear_0, expand)
        self.linear(layer.ffn.linear_1, f"{name}.feedforward.contract")
        self.norm(layer.ffn.layer_norm, f"{name}.around_feedforward.norm")

    def cross(self, spec: Any, name: str) -> None:
        weight, bias = self[f"{name}.cross.qkv.weight"], self[f"{name}.cross.qkv.bias"]
        dim = weight.shape[1]
        spec.linear[0].weight, spec.linear[0].bias = weight[:dim].copy(), bias[:dim].copy()
        spec.linear[1].weight, spec.linear[1].bias = weight[dim:].copy(), bias[dim:].copy()
        self.linear(spec.linear[2], f"{name}.cross.out")
        self.norm(spec.layer_norm, f"{name}.around_cross.norm")

    def linear(self, spec: Any, name: str) -> None:
        spec.weight = self[f"{name}.weight"]
        if f"{name}.bias" in self.tensors:
            spec.bias = self[f"{name}.bias"]

    def norm(self, spec: Any, name: str) -> None:
        spec.gamma, spec.beta = self[f"{name}.weight"], self[f"{name}.bias"]
