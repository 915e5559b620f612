"""The end of a language model: what to make of its last vectors and its output layer."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.layers.linear import Linear

# Takes the output layer and (positions, dim). A loss that fuses the two (train/losses.py) never
# holds all logits, the largest tensor of a small model; the model stays the one that is called,
# so that what wraps it (data parallelism) sees the whole computation.
OutputFn = Callable[[nn.Linear, Tensor], Tensor]


def logits(
    layer: nn.Linear, x: Float[Tensor, "*position dim"]
) -> Float[Tensor, "*position vocabulary"]:
    """Score every token of the vocabulary: what a model answers if not asked otherwise."""
    return layer(x)


def output_layer(embedding: nn.Embedding, *, tied: bool, bias: bool = False) -> Linear:
    """Build what scores the tokens of an embedding: if `tied`, with the embedding's own matrix."""
    layer = Linear(embedding.embedding_dim, embedding.num_embeddings, bias=bias)
    if tied:
        layer.weight = embedding.weight
    return layer
