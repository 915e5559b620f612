"""The four modules that an introduction to the Transformer builds (atlas T21), in our own words.

Each holds a sub-layer together with its residual connection and its LayerNorm. They are written to
be read and compared, not to be fast: three separate projections, a softmax spelled out, no padding.
`tests/nn/test_block.py` shows that our blocks compute the same.
"""

import math

import torch
from torch import Tensor, nn

from manyheads.nn.attention.attention import MultiHeadAttention as OurAttention
from manyheads.nn.blocks.block import DecoderBlock, EncoderBlock
from manyheads.nn.layers.feedforward import FeedForward as OurFeedForward
from manyheads.nn.layers.residual import PostNorm


class MultiheadAttention(nn.Module):
    """Every token looks at every token."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.queries = nn.Linear(channels, channels)
        self.keys = nn.Linear(channels, channels)
        self.values = nn.Linear(channels, channels)
        self.out = nn.Linear(channels, channels)
        self.norm = nn.LayerNorm(channels, eps=1e-5)

    def forward(self, x: Tensor) -> Tensor:
        return self.look(x, x)

    def look(self, x: Tensor, source: Tensor) -> Tensor:
        """Queries from x, keys and values from source; source may have another length (E2)."""
        q, k, v = self.queries(x), self.keys(source), self.values(source)
        q, k, v = (self.split(part) for part in (q, k, v))
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])  # divided, not multiplied (E3)
        weights = torch.softmax(self.hide(scores), dim=-1)
        joined = (weights @ v).transpose(1, 2).reshape(x.shape)
        out: Tensor = self.norm(x + self.out(joined))
        return out

    def split(self, x: Tensor) -> Tensor:
        """(batch, token, channels) -> (batch, head, token, channels / heads)."""
        batch, token, channels = x.shape
        return x.reshape(batch, token, self.heads, channels // self.heads).transpose(1, 2)

    def hide(self, scores: Tensor) -> Tensor:
        """Hide nothing."""
        return scores


class MaskedMultiHeadAttention(MultiheadAttention):
    """Every token looks at itself and at what stands before it: the upper triangle is -inf."""

    def hide(self, scores: Tensor) -> Tensor:
        future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)
        return scores.masked_fill(future, -math.inf)


class EncoderDecoderAttention(MultiheadAttention):
    """The target's tokens look at the source's: Q from the decoder, K and V from the encoder."""

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:  # type: ignore[override]
        return self.look(x, memory)


class FeedForward(nn.Module):
    """Wider, ReLU, back: for every token by itself."""

    def __init__(self, in_channels: int, ffn_expand: int) -> None:
        super().__init__()
        self.wider = nn.Linear(in_channels, in_channels * ffn_expand)
        self.back = nn.Linear(in_channels * ffn_expand, in_channels)
        self.norm = nn.LayerNorm(in_channels, eps=1e-5)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(x + self.back(torch.relu(self.wider(x))))
        return out


class EncoderLayer(nn.Module):
    """Self-attention, feed-forward."""

    def __init__(self, channels: int, heads: int, expand: int) -> None:
        super().__init__()
        self.attention = MultiheadAttention(channels, heads)
        self.feedforward = FeedForward(channels, expand)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.feedforward(self.attention(x))
        return out


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the encoder's output, feed-forward."""

    def __init__(self, channels: int, heads: int, expand: int) -> None:
        super().__init__()
        self.attention = MaskedMultiHeadAttention(channels, heads)
        self.cross = EncoderDecoderAttention(channels, heads)
        self.feedforward = FeedForward(channels, expand)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        out: Tensor = self.feedforward(self.cross(self.attention(x), memory))
        return out


def encoder_block(theirs: EncoderLayer) -> EncoderBlock:
    """Build our block with the same weights."""
    ours = EncoderBlock(
        _attention(theirs.attention),
        _feedforward(theirs.feedforward),
        lambda: PostNorm(theirs.attention.out.in_features),
    )
    _copy(theirs.attention.norm, ours.around_attention.norm)
    _copy(theirs.feedforward.norm, ours.around_feedforward.norm)
    return ours


def decoder_block(theirs: DecoderLayer) -> DecoderBlock:
    """Build our block with the same weights."""
    ours = DecoderBlock(
        _attention(theirs.attention),
        _attention(theirs.cross),
        _feedforward(theirs.feedforward),
        lambda: PostNorm(theirs.attention.out.in_features),
    )
    _copy(theirs.attention.norm, ours.around_attention.norm)
    _copy(theirs.cross.norm, ours.around_cross.norm)
    _copy(theirs.feedforward.norm, ours.around_feedforward.norm)
    return ours


def _attention(theirs: MultiheadAttention) -> OurAttention:
    ours = OurAttention(theirs.out.in_features, theirs.heads)
    projections = theirs.queries, theirs.keys, theirs.values
    with torch.no_grad():  # one packed projection: the three matrices on top of each other
        ours.qkv.weight.copy_(torch.cat([linear.weight for linear in projections]))
        ours.qkv.bias.copy_(torch.cat([linear.bias for linear in projections]))
    _copy(theirs.out, ours.out)
    return ours


def _feedforward(theirs: FeedForward) -> OurFeedForward:
    ours = OurFeedForward(theirs.wider.in_features, theirs.wider.out_features, nn.ReLU())
    _copy(theirs.wider, ours.expand)
    _copy(theirs.back, ours.contract)
    return ours


def _copy(theirs: nn.Module, ours: nn.Module) -> None:
    ours.load_state_dict(theirs.state_dict())
