"""One layer of an encoder or a decoder: attention and feed-forward, each inside a residual."""

from collections.abc import Callable
from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.editing.seam import STATE, is_open, layer_id_of, visit
from manyheads.nn.layers.cache import KeyValue, KeyValueCache
from manyheads.nn.layers.residual import PostNorm, PreNorm
from manyheads.nn.recording.features import record_features
from manyheads.nn.recording.trace import LayerId
from manyheads.nn.shapes import BeamVectors, Bias, Grid, Kept, Mask, Tokens

ResidualFactory = Callable[[], PostNorm | PreNorm]


class AttentionBlock(nn.Module):
    """A layer of attention and feed-forward: Muon (train/optim.py) trains its `muon_layers`.

    A module with `forward_methods` is a block to `train/model_wrapping.py`: these methods, and
    `forward`, are called from outside and compute with its parameters.
    """

    forward_methods: ClassVar[tuple[str, ...]] = ("prefill", "step", "project")
    muon_layers: ClassVar[type[nn.Module]] = nn.Linear

    attention: Any

    def entered(self, x: Tokens) -> Tokens:
        """Pass the site in front of the first block of a stack."""
        layer_id = layer_id_of(self.attention) if is_open() else None
        if layer_id is None or layer_id.layer:
            return x
        return visit(LayerId(layer_id.stack, -1), STATE, x)

    def left(self, x: Tokens) -> Tokens:
        """Pass the site behind a block."""
        return visit(layer_id_of(self.attention), STATE, x) if is_open() else x


class SelfAttentionBlock(AttentionBlock):
    """Attention of tokens to each other, then feed-forward, each inside a residual."""

    def __init__(
        self, attention: nn.Module, feedforward: nn.Module, residual: ResidualFactory
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feedforward = feedforward
        self.around_attention = residual()
        self.around_feedforward = residual()
        self.around_attention.named("attention", attention)
        self.around_feedforward.named("feedforward", attention)

    def finish(self, x: Tokens, mixed: Tokens) -> Tokens:
        """Add what attention mixed, then transform each token."""
        x = self.around_attention.add(x, mixed)
        y = self.feedforward(self.around_feedforward.enter(x))
        return self.left(self.around_feedforward.add(x, y))


class EncoderBlock(SelfAttentionBlock):
    """The encoder layer of text and of images alike."""

    attention: MultiHeadAttention

    def forward(self, x: Tokens, mask: Mask | None = None, bias: Bias | None = None) -> Tokens:
        """Mix tokens, then transform each."""
        record_features(x)
        x = self.entered(x)
        return self.finish(x, self.attention(self.around_attention.enter(x), mask, bias))

    def prefill(self, x: Tokens, mask: Mask, cache: KeyValueCache) -> tuple[Tokens, KeyValueCache]:
        """Process several tokens at once, and keep their keys and values for `step`."""
        x = self.entered(x)
        y, cache = self.attention.prefill(self.around_attention.enter(x), mask, cache)
        return self.finish(x, y), cache

    def step(self, x: BeamVectors, cache: KeyValueCache) -> tuple[BeamVectors, KeyValueCache]:
        """Process one new token a beam; it sees the past in the cache, and itself."""
        x = self.entered(x)
        y, cache = self.attention.step(self.around_attention.enter(x), cache)
        return self.finish(x, y), cache


class GridBlock(SelfAttentionBlock):
    """A block whose attention knows rows and columns: windows, convolutions."""

    def forward(self, x: Tokens, grid: Grid) -> Tokens:
        """Mix tokens, then transform each."""
        record_features(x)
        x = self.entered(x)
        return self.finish(x, self.attention(self.around_attention.enter(x), grid))


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
        self.attention: MultiHeadAttention = attention
        self.cross = cross
        self.feedforward = feedforward
        self.around_attention = residual()
        self.around_cross = residual()
        self.around_feedforward = residual()
        self.around_attention.named("attention", attention)
        self.around_cross.named("cross", attention)
        self.around_feedforward.named("feedforward", attention)

    def forward(
        self,
        x: Tokens,
        memory: Float[Tensor, "source key source_dim"],
        mask: Mask,
        memory_mask: Mask | None,
        owners: Kept | None = None,
    ) -> Tokens:
        """Process a whole target at once under the causal mask (teacher forcing).

        The memory is projected in here, because FSDP2 gathers a block's parameters when its forward
        begins. `owners` has the source of each target where several share one; None: one each.
        """
        x = self.entered(x)
        x = self.around_attention.add(x, self.attention(self.around_attention.enter(x), mask))
        source = self.cross.project(memory)
        source = source if owners is None else source.select(owners)
        y = self.cross.cross_attend(self.around_cross.enter(x), source, memory_mask)
        x = self.around_cross.add(x, y)
        y = self.feedforward(self.around_feedforward.enter(x))
        return self.left(self.around_feedforward.add(x, y))

    def project(self, memory: Float[Tensor, "batch key source_dim"]) -> KeyValue:
        """Compute keys and values of the memory for `step`, those of each head contiguous."""
        return self.cross.project(memory).contiguous()

    def step(
        self,
        x: BeamVectors,
        source: KeyValue,
        source_mask: Mask | None,
        cache: KeyValueCache,
        *,
        need_weights: bool = False,
    ) -> tuple[BeamVectors, KeyValueCache, Float[Tensor, "sentence head beam source"] | None]:
        """Process one new token a beam. Beams ride on the query axis of the cross-attention.

        With `need_weights` the map of the cross-attention is returned too.
        """
        x = self.entered(x)
        y, cache = self.attention.step(self.around_attention.enter(x), cache)
        x = self.around_attention.add(x, y)
        y = self.around_cross.enter(x)
        weights = self.cross.cross_weights(y, source, source_mask) if need_weights else None
        x = self.around_cross.add(x, self.cross.cross_attend(y, source, source_mask))
        x = self.around_feedforward.add(x, self.feedforward(self.around_feedforward.enter(x)))
        return self.left(x), cache, weights
