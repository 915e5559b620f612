"""Attention rollout: from where the last layer's tokens come, through all layers below it.

Source: Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3.
"""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from manyheads.lens.reading import Attention


def rollout(layers: Sequence[Attention], start: Float[Tensor, " token"]) -> Float[Tensor, " token"]:
    """Follow shares of the last layer's tokens down to the tokens below the first layer.

    A layer passes on half of its attention (mean over heads) and half of what stood there already,
    the residual connection: each factor is 0.5 A + 0.5 I. From the top down it is multiplied with
    one row instead of being multiplied out.

    Args:
        layers: self-attentions, the lowest first; see `why_not`.
        start: how much of each token is asked about, such as 1 for the class token.
    """
    for layer in reversed(layers):
        start = (start + layer.read_by(start)) / 2
    return start


def why_not(layers: Sequence[Attention]) -> str | None:
    """Say why rollout is not defined for these layers; None if it is."""
    if not layers:
        return "there is no self-attention"
    for layer in layers:
        if not layer.square:
            queries, keys = layer.shape
            return (
                f"{layer.site} compares {queries:,} queries with {keys:,} keys of their own, so "
                "its map is not square"
            )
        if layer.windows is not None and layer.windows.padding_attended:
            return f"part of the attention of {layer.site} goes to padding"
    first, last = layers[0], layers[-1]
    for layer in layers:
        if (layer.places, layer.shape) != (first.places, first.shape):
            return (
                f"the tokens change on the way: {_tokens(first)} in {first.site}, "
                f"{_tokens(last)} in {last.site}"
            )
    return None


def _tokens(layer: Attention) -> str:
    if layer.places is None:
        return f"{layer.shape[0]:,} tokens"
    return "{:,} x {:,}".format(*layer.places.grid)
