"""Stacks of blocks: the encoder that text and images share, and the decoder."""

from collections.abc import Iterable, Sequence

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.blocks.block import DecoderBlock, EncoderBlock
from manyheads.nn.editing.seam import at_step, at_tokens, is_open, remaining
from manyheads.nn.layers.cache import KeyValue, KeyValueCache
from manyheads.nn.layers.masks import causal_mask
from manyheads.nn.recording.trace import LayerId
from manyheads.nn.recording.tracking import track_memory
from manyheads.nn.shapes import BeamVectors, Bias, Kept, Mask, Tokens


class Encoder(nn.Module):
    """Blocks in a row, then `norm`: identity after post-norm blocks, LayerNorm after pre-norm."""

    def __init__(self, blocks: Iterable[EncoderBlock], norm: nn.Module) -> None:
        super().__init__()
        self.blocks: Sequence[EncoderBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm = norm
        for layer, block in enumerate(self.blocks):
            block.attention.layer_id = LayerId("encoder", layer, "self")

    def forward(self, x: Tokens, mask: Mask | None = None, bias: Bias | None = None) -> Tokens:
        """Give every token a vector that knows its context."""
        at_tokens()
        x, blocks = remaining(self.blocks, x) if is_open() else (x, self.blocks)
        for block in blocks:
            x = block(x, mask, bias)
        return track_memory(self.norm(x))

    def prefill(
        self, x: Tokens, caches: Sequence[KeyValueCache]
    ) -> tuple[Tokens, list[KeyValueCache]]:
        """Process tokens behind those of the caches under the causal mask; grow the caches."""
        at_tokens(caches[0].length)
        mask = causal_mask(x.shape[1], x.device, past=caches[0].length)
        grown = []
        for block, cache in zip(self.blocks, caches, strict=True):
            x, cache = block.prefill(x, mask, cache)
            grown.append(cache)
        return self.norm(x), grown

    def step(
        self, x: BeamVectors, caches: Sequence[KeyValueCache]
    ) -> tuple[BeamVectors, list[KeyValueCache]]:
        """Process one new token a beam: with the causal mask, an encoder is a decoder alone."""
        at_step(caches[0].length)
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
            block.attention.layer_id = LayerId("decoder", layer, "self")
            block.cross.layer_id = LayerId("decoder", layer, "cross")

    def forward(
        self,
        x: Tokens,
        memory: Float[Tensor, "source key source_dim"],
        memory_mask: Mask | None = None,
        owners: Kept | None = None,
    ) -> Tokens:
        """Process a whole target; position t sees positions 0..t and all of the memory.

        `owners` has the source of each target where several share one; None: one each.
        """
        at_tokens()
        mask = causal_mask(x.shape[1], x.device)
        for block in self.blocks:
            x = block(x, memory, mask, memory_mask, owners)
        return self.norm(x)

    def project(self, memory: Float[Tensor, "batch key source_dim"]) -> list[KeyValue]:
        """Compute each block's keys and values of the memory: once a sentence, not once a step."""
        return [block.project(memory) for block in self.blocks]

    def step(
        self,
        x: BeamVectors,
        sources: Sequence[KeyValue],
        source_mask: Mask | None,
        caches: Sequence[KeyValueCache],
        *,
        weights_of: int | None = None,
    ) -> tuple[BeamVectors, list[KeyValueCache], Float[Tensor, "sentence head beam source"] | None]:
        """Process one new token a beam; return the cross-attention of layer `weights_of` too."""
        at_step(caches[0].length)
        grown, weights = [], None
        parts = zip(self.blocks, sources, caches, strict=True)
        for layer, (block, source, cache) in enumerate(parts):
            need = layer == weights_of
            x, cache, found = block.step(x, source, source_mask, cache, need_weights=need)
            grown.append(cache)
            weights = weights if found is None else found
        return self.norm(x), grown, weights
