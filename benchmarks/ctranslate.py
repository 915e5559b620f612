"""Our Transformer in CTranslate2, the engine that sets the mark for translation on a CPU."""

import tempfile
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from benchmarks.peers import import_peer
from manyheads.models.transformer import Transformer


def ctranslate2(model: Transformer, compute: str, *, workers: int) -> Any:
    """Export a post-norm, ReLU, tied Transformer and load it, on `workers` single threads.

    The tokens are the ids, written as text; id 3 plays the unknown token.
    """
    library = import_peer("ctranslate2")
    config = model.config
    assert (config.norm, config.activation, config.tied) == ("post", "relu", True)
    spec = library.specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers), config.heads, pre_norm=False
    )
    encodings = cast(Any, model.positions).table.numpy()
    for ours, theirs in ((model.encoder, spec.encoder), (model.decoder, spec.decoder)):
        embedding = theirs.embeddings if ours is model.decoder else theirs.embeddings[0]
        embedding.weight = model.embedding.weight.detach().numpy()
        theirs.position_encodings.encodings = encodings
        for block, layer in zip(cast(Any, ours.blocks), theirs.layer, strict=True):
            _self_attention(layer.self_attention, block.attention, block.around_attention)
            if ours is model.decoder:
                _cross_attention(layer.attention, block.cross, block.around_cross)
            _linear(layer.ffn.linear_0, block.feedforward.expand)
            _linear(layer.ffn.linear_1, block.feedforward.contract)
            _norm(layer.ffn.layer_norm, block.around_feedforward.norm)
    _linear(spec.decoder.projection, model.output)
    tokens = [str(token) for token in range(config.vocabulary)]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.decoder_start_token = spec.config.bos_token = tokens[config.start]
    spec.config.eos_token, spec.config.unk_token = tokens[config.end], tokens[3]
    spec.validate()
    spec.optimize(quantization=None if compute == "float32" else compute)
    with tempfile.TemporaryDirectory() as folder:
        spec.save(str(Path(folder)))
        return library.Translator(
            folder, device="cpu", compute_type=compute, inter_threads=workers, intra_threads=1
        )


def _self_attention(spec: Any, attention: Any, around: Any) -> None:
    _linear(spec.linear[0], attention.qkv)
    _linear(spec.linear[1], attention.out)
    _norm(spec.layer_norm, around.norm)


def _cross_attention(spec: Any, attention: Any, around: Any) -> None:
    dim = attention.out.in_features
    weight, bias = attention.qkv.weight.detach(), attention.qkv.bias.detach()
    spec.linear[0].weight, spec.linear[0].bias = weight[:dim].numpy(), bias[:dim].numpy()
    spec.linear[1].weight, spec.linear[1].bias = weight[dim:].numpy(), bias[dim:].numpy()
    _linear(spec.linear[2], attention.out)
    _norm(spec.layer_norm, around.norm)


def _linear(spec: Any, layer: nn.Linear) -> None:
    spec.weight = layer.weight.detach().numpy()
    if layer.bias is not None:
        spec.bias = layer.bias.detach().numpy()


def _norm(spec: Any, layer: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = layer.weight.detach().numpy(), layer.bias.detach().numpy()


def cpu_threads() -> int:
    """As many single-threaded workers as torch takes threads: better than one with them all."""
    return torch.get_num_threads()
