"""Blocks over the tokens of one text, shared by Transformer, language models and taggers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from manyheads.models.components import (
    ATTENTIONS,
    RESIDUALS,
    AttentionName,
    FeedForwardName,
    Norm,
    TokenPositions,
    feedforward,
    final_norm,
)
from manyheads.models.exported_graphs import Graph, tokens_input
from manyheads.models.model_config import ModelConfig
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.rotary import Rotary, Rotate, unrotated
from manyheads.nn.blocks.block import EncoderBlock, ResidualFactory
from manyheads.nn.blocks.stack import Encoder
from manyheads.nn.layers import initial_weights as initial
from manyheads.nn.layers.feedforward import FeedForward, GatedFeedForward


@dataclass(frozen=True, kw_only=True)
class TextBlockConfig(ModelConfig):
    """Shape and parts of a block; the sizes are those of BERT-base and GPT-2 small."""

    dim: int = 768
    heads: int = 12
    ffn_dim: int = 3072
    dropout: float = 0.1
    attention: AttentionName = "softmax"  # self-attention; more: `register_attention`
    attention_dropout: float = 0.0  # more than 0 leaves the fast path of the fused kernel
    norm: Norm = "pre"
    activation: FeedForwardName = "gelu"  # "swiglu" has three matrices of this width, not two
    positions: TokenPositions = "learned"  # more: `register_positions`
    max_length: int = 512  # of learned positions; sinusoids reach beyond it
    norm_eps: float = 1e-5

    @property
    def token_limit(self) -> int:
        """As many tokens as there are learned positions; formulas have no limit."""
        return self.max_length if self.positions == "learned" else super().token_limit


@dataclass(frozen=True, kw_only=True)
class TextEncoderConfig(TextBlockConfig):
    """Shape and parts of one encoder stack."""

    layers: int = 12

    def graphs(self, model: Any) -> Sequence[Graph]:
        """One graph, from ids to the logits of every token."""
        limits = {"tokens": self.max_length}
        return (Graph("model", model, (tokens_input(),), ("logits",), limits),)


def self_attention(config: TextBlockConfig) -> MultiHeadAttention:
    """Build self-attention; rotary positions turn its queries and keys."""
    rotary = config.positions == "rotary"
    rotate: Rotate = Rotary(config.max_length, config.dim // config.heads) if rotary else unrotated
    part = ATTENTIONS[config.attention]
    return part(config.dim, config.heads, dropout=config.attention_dropout, rotate=rotate)


def block_feedforward(config: TextBlockConfig) -> FeedForward | GatedFeedForward:
    """Build the feed-forward part of a block."""
    return feedforward(config.activation, config.dim, config.ffn_dim, dropout=config.dropout)


def residual(config: TextBlockConfig) -> ResidualFactory:
    """Return the constructor of the residual connections of a block."""
    part = RESIDUALS[config.norm]
    return partial(part, config.dim, dropout=config.dropout, eps=config.norm_eps)


def encoder_blocks(config: TextBlockConfig, layers: int) -> list[EncoderBlock]:
    """Build the blocks of an encoder stack."""
    return [
        EncoderBlock(self_attention(config), block_feedforward(config), residual(config))
        for _ in range(layers)
    ]


def text_encoder(config: TextEncoderConfig) -> Encoder:
    """Build the stack, with Xavier weights and zero biases."""
    closing = final_norm(config.norm, config.dim, config.norm_eps)
    stack = Encoder(encoder_blocks(config, config.layers), closing)
    initial.xavier(stack)
    return stack
