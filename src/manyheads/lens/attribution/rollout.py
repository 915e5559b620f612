"""Attention rollout: the input tokens that the last layer's tokens attend to, through all layers.

Source: Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3.
"""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from manyheads.lens.trace.attention_reader import Attention


def rollout(layers: Sequence[Attention], start: Float[Tensor, " token"]) -> Float[Tensor, " token"]:
    """Follow shares of the last layer's tokens down to the tokens below the first layer.

    A layer passes on half of its attention (mean over heads) and half of its input, by the residual
    connection: each factor is 0.5 A + 0.5 I. From the top down one row is multiplied with the
    factors, so their product is never formed.

    Args:
        layers: self-attentions, the lowest first; see `why_not`.
        start: the share of each token in the question, such as 1 for the class token.
    """
    for layer in reversed(layers):
        start = (start + layer.read_by(start)) / 2
    return start


def why_not(layers: Sequence[Attention]) -> str | None:
    """Explain why rollout is not defined for these layers; None if it is."""
    if not layers:
        return "there is no self-attention"
    for layer in layers:
        if not layer.square:
            queries, keys = layer.shape
            return (
                f"{layer.layer_id} compares {queries:,} queries with {keys:,} keys of their own, "
                "so its map is not square"
            )
        if layer.partition is not None and layer.partition.padding_attended:
            return f"part of the attention of {layer.layer_id} goes to padding"
    if len({(layer.query_grid, layer.shape) for layer in layers}) > 1:
        first, last = layers[0], layers[-1]
        return (
            f"the tokens change on the way: {_tokens(first)} in {first.layer_id}, "
            f"{_tokens(last)} in {last.layer_id}"
        )
    return None


def _tokens(layer: Attention) -> str:
    if layer.query_grid is None:
        return f"{layer.shape[0]:,} tokens"
    return "{:,} x {:,}".format(*layer.query_grid.shape)
