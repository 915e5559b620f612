"""Useful operations by the formula: two for each multiply-add of a matrix product, no padding.

Norms, softmax, dropout and the like do not count: what they cost shows as a smaller share of the
peak. A backward pass is twice the forward.
"""

from collections.abc import Iterable

from manyheads.models.transformer import TransformerConfig
from manyheads.models.vit import VitConfig

TRAINING = 3  # forward and backward, in units of the forward


def vit(config: VitConfig) -> float:
    """Count the operations of classifying one image."""
    rows, columns = config.grid
    patches = rows * columns
    tokens = patches + (config.pool == "class")
    embedding = 2 * patches * config.channels * config.patch**2 * config.dim
    block = _attention(tokens, tokens, config.dim) + _feedforward(
        tokens, config.dim, config.ffn_dim
    )
    return embedding + config.layers * block + 2 * config.dim * config.classes


def translation(config: TransformerConfig, lengths: Iterable[tuple[int, int]]) -> float:
    """Count the operations of one forward pass over pairs of (source, target) lengths."""
    return sum(_pair(config, source, target) for source, target in lengths)


def decoding(config: TransformerConfig, source: int, target: int, beams: int) -> float:
    """Count the operations of finding one translation with keys and values kept."""
    dim = config.dim
    encoder = config.encoder_layers * (
        _attention(source, source, dim) + _feedforward(source, dim, config.ffn_dim)
    )
    keys_and_values = config.decoder_layers * 2 * source * 2 * dim * dim
    growing = sum(range(1, target + 1))  # keys seen by all steps together
    layer = (
        2 * target * 6 * dim * dim  # self-attention's four products, the other's two
        + 4 * (growing + target * source) * dim
        + _feedforward(target, dim, config.ffn_dim)
    )
    steps = config.decoder_layers * layer + 2 * target * dim * config.vocabulary
    return encoder + keys_and_values + beams * steps


def _pair(config: TransformerConfig, source: int, target: int) -> float:
    dim, hidden = config.dim, config.ffn_dim
    encoder = _attention(source, source, dim) + _feedforward(source, dim, hidden)
    decoder = (
        _attention(target, target, dim)
        + _attention(target, source, dim)
        + _feedforward(target, dim, hidden)
    )
    return (
        config.encoder_layers * encoder
        + config.decoder_layers * decoder
        + 2 * target * dim * config.vocabulary
    )


def _attention(queries: int, keys: int, dim: int) -> float:
    """Count queries and output, keys and values, QK^T and the weighted sum."""
    return 4 * (queries + keys) * dim * dim + 4 * queries * keys * dim


def _feedforward(tokens: int, dim: int, hidden: int) -> float:
    return 4 * tokens * dim * hidden
