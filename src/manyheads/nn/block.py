"""One layer of an encoder or a decoder: attention and feed-forward, each inside a residual."""

from collections.abc import Callable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from manyheads.nn.attention import MultiHeadAttention
from manyheads.nn.cache import KeyValue, KeyValueCache
from manyheads.nn.features import keep_tokens
from manyheads.nn.residual import PostNorm, PreNorm

ResidualFactory = Callable[[], PostNorm | PreNorm]


class AttentionBlock(nn.Module):
    """A layer of attention and feed-forward: Muon (train/optim.py) trains the matrices in it."""


class EncoderBlock(AttentionBlock):
    """Self-attention, then feed-forward: the encoder layer of text and of images alike."""

    def __init__(
        self, attention: MultiHeadAttention, feedforward: nn.Module, residual: ResidualFactory
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feedforward = feedforward
        self.around_attention = residual()
        self.around_feedforward = residual()

    def forward(
        self,
        x: Float[Tensor, "batch token dim"],
        mask: Bool[Tensor, "..."] | None = None,
        bias: Float[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch token dim"]:
        """Mix tokens, then transform each."""
        keep_tokens(x)
        x = self.around_attention(x, lambda y: self.attention(y, mask, bias))
        return self.around_feedforward(x, self.feedforward)

    def read(
        self,
        x: Float[Tensor, "batch token dim"],
        mask: Bool[Tensor, "..."],
        cache: KeyValueCache,
    ) -> tuple[Float[Tensor, "batch token dim"], KeyValueCache]:
        """Process a beginning at once, and keep its keys and values for `step`."""
        grown = cache

        def itself(y: Tensor) -> Tensor:
            nonlocal grown
            out, grown = self.attention.read(y, mask, cache)
            return out

        x = self.around_attention(x, itself)
        return self.around_feedforward(x, self.feedforward), grown

    def step(
        self, x: Float[Tensor, "sentence beam dim"], cache: KeyValueCache
    ) -> tuple[Float[Tensor, "sentence beam dim"], KeyValueCache]:
        """Process one new token a beam; it sees the past in the cache, and itself."""
        grown = cache

        def past(y: Tensor) -> Tensor:
            nonlocal grown
            out, grown = self.attention.step(y, cache)
            return out

        x = self.around_attention(x, past)
        return self.around_feedforward(x, self.feedforward), grown


class DecoderBlock(AttentionBlock):
    """Masked self-attention, attention over the source, then feed-forward (section 3.1)."""

    def __init__(
        self,
        attention: MultiHeadAttention,
        cross: MultiHeadAttention,
        feedforward: nn.Module,
        residual: ResidualFactory,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.cross = cross
        self.feedforward = feedforward
        self.around_attention = residual()
        self.around_cross = residual()
        self.around_feedforward = residual()

    def forward(
        self,
        x: Float[Tensor, "batch token dim"],
        source: KeyValue,
        mask: Bool[Tensor, "..."],
        source_mask: Bool[Tensor, "..."] | None,
    ) -> Float[Tensor, "batch token dim"]:
        """Process a whole target at once under the causal mask (teacher forcing)."""
        x = self.around_attention(x, lambda y: self.attention(y, mask))
        x = self.around_cross(x, lambda y: self.cross.over(y, source, source_mask))
        return self.around_feedforward(x, self.feedforward)

    def step(
        self,
        x: Float[Tensor, "sentence beam dim"],
        source: KeyValue,
        source_mask: Bool[Tensor, "..."] | None,
        cache: KeyValueCache,
    ) -> tuple[Float[Tensor, "sentence beam dim"], KeyValueCache]:
        """Process one new token a beam. Beams ride on the query axis of the cross-attention."""
        grown = cache

        def past(y: Tensor) -> Tensor:
            nonlocal grown
            out, grown = self.attention.step(y, cache)
            return out

        x = self.around_attention(x, past)
        x = self.around_cross(x, lambda y: self.cross.over(y, source, source_mask))
        return self.around_feedforward(x, self.feedforward), grown
