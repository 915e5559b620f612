"""The encoder stack over the tokens of one text, as language models and taggers have it."""

from dataclasses import dataclass

from manyheads.models.parts import (
    RESIDUALS,
    FeedForwardName,
    Norm,
    TokenPositions,
    feedforward,
    final_norm,
    rotation,
)
from manyheads.nn import initial
from manyheads.nn.attention import MultiHeadAttention
from manyheads.nn.block import EncoderBlock
from manyheads.nn.stack import Encoder


@dataclass(frozen=True, kw_only=True)
class TextEncoderConfig:
    """Shape and parts of the stack; every key means what it means in a Transformer."""

    dim: int = 768
    layers: int = 12
    heads: int = 12
    hidden: int = 3072
    dropout: float = 0.1
    attention_dropout: float = 0.0  # more than 0 leaves the fast path of the fused kernel
    norm: Norm = "pre"
    activation: FeedForwardName = "gelu"
    positions: TokenPositions = "learned"
    max_length: int = 512  # of learned positions; sinusoids reach beyond it
    norm_eps: float = 1e-5


def text_encoder(config: TextEncoderConfig) -> Encoder:
    """Build the stack, with Xavier weights and zero biases."""
    size = config.dim // config.heads
    blocks = [
        EncoderBlock(
            MultiHeadAttention(
                config.dim,
                config.heads,
                dropout=config.attention_dropout,
                rotate=rotation(config.positions, config.max_length, size),
            ),
            feedforward(config.activation, config.dim, config.hidden, dropout=config.dropout),
            lambda: RESIDUALS[config.norm](config.dim, dropout=config.dropout, eps=config.norm_eps),
        )
        for _ in range(config.layers)
    ]
    stack = Encoder(blocks, final_norm(config.norm, config.dim, config.norm_eps))
    initial.xavier(stack)
    return stack
