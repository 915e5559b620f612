"""Our encoder and decoder with the weights of `torch.nn.Transformer`, for parity tests."""

import torch
import torch.nn.functional as F
from torch import nn

from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.blocks.block import DecoderBlock, EncoderBlock
from manyheads.nn.blocks.stack import Decoder, Encoder
from manyheads.nn.layers.feedforward import FeedForward
from manyheads.nn.layers.residual import PostNorm, PreNorm

Layer = nn.TransformerEncoderLayer | nn.TransformerDecoderLayer


def encoder_of(theirs: nn.TransformerEncoder) -> Encoder:
    """Build our encoder with the same parts and weights."""
    return Encoder((encoder_block(layer) for layer in theirs.layers), _final(theirs.norm))


def decoder_of(theirs: nn.TransformerDecoder) -> Decoder:
    """Build our decoder with the same parts and weights."""
    return Decoder((decoder_block(layer) for layer in theirs.layers), _final(theirs.norm))


def encoder_block(theirs: nn.TransformerEncoderLayer) -> EncoderBlock:
    """Build our block with the same parts and weights."""
    ours = EncoderBlock(
        attention(theirs.self_attn), _feedforward(theirs), lambda: _residual(theirs)
    )
    _copy(theirs.norm1, ours.around_attention.norm)
    _copy(theirs.norm2, ours.around_feedforward.norm)
    return ours


def decoder_block(theirs: nn.TransformerDecoderLayer) -> DecoderBlock:
    """Build our block with the same parts and weights."""
    ours = DecoderBlock(
        attention(theirs.self_attn),
        attention(theirs.multihead_attn),
        _feedforward(theirs),
        lambda: _residual(theirs),
    )
    _copy(theirs.norm1, ours.around_attention.norm)
    _copy(theirs.norm2, ours.around_cross.norm)
    _copy(theirs.norm3, ours.around_feedforward.norm)
    return ours


def attention(theirs: nn.MultiheadAttention) -> MultiHeadAttention:
    """Build our attention with the same weights: both pack the three projections."""
    ours = MultiHeadAttention(theirs.embed_dim, theirs.num_heads)
    with torch.no_grad():
        assert theirs.in_proj_weight is not None
        assert theirs.in_proj_bias is not None
        ours.qkv.weight.copy_(theirs.in_proj_weight)
        ours.qkv.bias.copy_(theirs.in_proj_bias)
    _copy(theirs.out_proj, ours.out)
    return ours


def _feedforward(theirs: Layer) -> FeedForward:
    activation = nn.ReLU() if theirs.activation is F.relu else nn.GELU()
    ours = FeedForward(theirs.linear1.in_features, theirs.linear1.out_features, activation)
    _copy(theirs.linear1, ours.expand)
    _copy(theirs.linear2, ours.contract)
    return ours


def _residual(theirs: Layer) -> PostNorm | PreNorm:
    kind = PreNorm if theirs.norm_first else PostNorm
    return kind(theirs.linear1.in_features, eps=theirs.norm1.eps)


def _final(theirs: nn.Module | None) -> nn.Module:
    if theirs is None:
        return nn.Identity()
    assert isinstance(theirs, nn.LayerNorm)
    ours = nn.LayerNorm(theirs.normalized_shape[0], eps=theirs.eps)
    _copy(theirs, ours)
    return ours


def _copy(theirs: nn.Module, ours: nn.Module) -> None:
    ours.load_state_dict(theirs.state_dict())
