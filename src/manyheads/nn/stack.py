"""Stacks of blocks: the encoder that text and images share, and the decoder."""

from collections.abc import Iterable, Sequence

from jaxtyping import Bool, Float
from torch import Tensor, nn

from manyheads.nn.block import DecoderBlock, EncoderBlock
from manyheads.nn.cache import KeyValue, KeyValueCache
from manyheads.nn.masks import causal_mask
from manyheads.nn.trace import Site


class Encoder(nn.Module):
    """Blocks in a row, then `norm`: identity after post-norm blocks, LayerNorm after pre-norm."""

    def __init__(self, blocks: Iterable[EncoderBlock], norm: nn.Module) -> None:
        super().__init__()
        self.blocks: Sequence[EncoderBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm = norm
        for layer, block in enumerate(self.blocks):
            block.attention.site = Site("encoder", layer, "self")

    def forward(
        self,
        x: Float[Tensor, "batch token dim"],
        mask: Bool[Tensor, "..."] | None = None,
        bias: Float[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch token dim"]:
        """Give every token a vector that knows its context."""
        for block in self.blocks:
            x = block(x, mask, bias)
        return self.norm(x)

    def read(
        self, x: Float[Tensor, "batch token dim"], caches: Sequence[KeyValueCache]
    ) -> tuple[Float[Tensor, "batch token dim"], list[KeyValueCache]]:
        """Process a beginning under the causal mask, filling empty caches for `step`."""
        mask = causal_mask(x.shape[1], x.device)
        grown = []
        for block, cache in zip(self.blocks, caches, strict=True):
            x, cache = block.read(x, mask, cache)
            grown.append(cache)
        return self.norm(x), grown

    def step(
        self, x: Float[Tensor, "sentence beam dim"], caches: Sequence[KeyValueCache]
    ) -> tuple[Float[Tensor, "sentence beam dim"], list[KeyValueCache]]:
        """Process one new token a beam: with the causal mask, an encoder is a decoder alone."""
        grown = []
        for block, cache in zip(self.blocks, caches, strict=True):
            x, cache = block.step(x, cache)
            grown.append(cache)
        return self.norm(x), grown


class Decoder(nn.Module):
    """Decoder blocks in a row, over a whole target (`forward`) or one token at a time (`step`)."""

    def __init__(self, blocks: Iterable[DecoderBlock], norm: nn.Module) -> None:
        super().__init__()
        self.blocks: Sequence[DecoderBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm = norm
        for layer, block in enumerate(self.blocks):
            block.attention.site = Site("decoder", layer, "self")
            block.cross.site = Site("decoder", layer, "cross")

    def forward(
        self,
        x: Float[Tensor, "batch token dim"],
        memory: Float[Tensor, "batch key dim"],
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch token dim"]:
        """Process a whole target; position t sees positions 0..t and all of the memory."""
        mask = causal_mask(x.shape[1], x.device)
        for block in self.blocks:
            x = block(x, block.cross.project(memory), mask, memory_mask)
        return self.norm(x)

    def project(self, memory: Float[Tensor, "batch key dim"]) -> list[KeyValue]:
        """Compute each block's keys and values of the memory: once a sentence, not once a step.

        Each head's lie together, as every step reads them.
        """
        projected = [block.cross.project(memory) for block in self.blocks]
        return [KeyValue(source.k.contiguous(), source.v.contiguous()) for source in projected]

    def step(
        self,
        x: Float[Tensor, "sentence beam dim"],
        sources: Sequence[KeyValue],
        source_mask: Bool[Tensor, "..."] | None,
        caches: Sequence[KeyValueCache],
    ) -> tuple[Float[Tensor, "sentence beam dim"], list[KeyValueCache]]:
        """Process one new token a beam."""
        grown = []
        for block, source, cache in zip(self.blocks, sources, caches, strict=True):
            x, cache = block.step(x, source, source_mask, cache)
            grown.append(cache)
        return self.norm(x), grown
