"""The half that writes, shared by every model with a Transformer decoder.

What is read differs: a Transformer encodes tokens, a captioner an image. What writes is the same:
teacher forcing over a whole target, or one token at a time through the Step protocol.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn

from manyheads.models.components import final_norm
from manyheads.models.exported_graphs import (
    ROWS,
    Graph,
    GraphCache,
    GraphInput,
    layer_inputs,
    layer_names,
    pairs,
)
from manyheads.models.text_encoder import (
    TextBlockConfig,
    block_feedforward,
    residual,
    self_attention,
)
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.blocks.block import DecoderBlock
from manyheads.nn.blocks.stack import Decoder
from manyheads.nn.layers.cache import KeyValue, KeyValueCache, rows_of_beams, rows_of_sentences
from manyheads.nn.layers.linear import Linear
from manyheads.nn.layers.output_head import OutputFn
from manyheads.nn.recording.tracking import start_text
from manyheads.nn.shapes import (
    Kept,
    Mask,
    PerBeam,
    Scores,
    SourceWeights,
    TokenIds,
    Tokens,
    check_ids,
)


@dataclass(frozen=True, kw_only=True)
class DecoderConfig(TextBlockConfig):
    """Shape and parts of the half that writes."""

    decoder_layers: int = 6
    scale_embedding: bool = True  # by the root of dim (Vaswani et al. 2017, section 3.4)
    output_bias: bool = False
    pad: int = 0
    start: int = 1
    end: int = 2

    @property
    def source_dim(self) -> int:
        """Width of what is read."""
        return self.dim

    @property
    def source_input(self) -> GraphInput:
        """Input of the graph that reads, its rows called "sentences"."""
        raise NotImplementedError

    def graphs(self, model: Any) -> Sequence[Graph]:
        """Two graphs: what reads, and what writes the next token."""
        layers, size = self.decoder_layers, self.dim // self.heads
        source, most = self.source_input, self.max_length
        sources = layer_names(layers, prefix="source_")
        read, past = (ROWS, self.heads, 5, size), (ROWS, 3, self.heads, 4, size)
        given = [
            GraphInput("tokens", torch.full((ROWS, 3), self.start), {0: "sentences", 1: "beams"}),
            GraphInput(
                "source_mask", torch.ones(ROWS, 5, dtype=torch.bool), {0: "sentences", 1: "source"}
            ),
            *layer_inputs(layers, "source_", read, {0: "sentences", 2: "source"}),
            *layer_inputs(layers, "past_", past, {0: "sentences", 1: "beams", 3: "past"}),
        ]
        written = ("log_probabilities", "attention", *layer_names(layers))
        return (
            Graph(
                "encoder",
                ReadGraph(model),
                (source,),
                ("source_mask", *sources),
                limits={"source": most},
            ),
            Graph(
                "decoder",
                WriteGraph(model),
                given,
                written,
                limits={"past": most - 1},
                empty=("past",),
                listed=2,
            ),
        )


def decoder(config: DecoderConfig) -> Decoder:
    """Build the decoder stack."""
    width, rate = config.source_dim, config.attention_dropout
    blocks = [
        DecoderBlock(
            self_attention(config),
            MultiHeadAttention(config.dim, config.heads, source_dim=width, dropout=rate),
            block_feedforward(config),
            residual(config),
        )
        for _ in range(config.decoder_layers)
    ]
    return Decoder(blocks, final_norm(config.norm, config.dim, config.norm_eps))


@dataclass(frozen=True)
class DecoderState:
    """State of decoding between steps; rows of a cache are sentence x beam."""

    sources: list[KeyValue]
    source_mask: Tensor | None  # None: nothing of the sources is padding
    caches: list[KeyValueCache]
    beams: int


C = TypeVar("C", bound=DecoderConfig)


class EncoderDecoder(nn.Module, Generic[C]):
    """The Step protocol over `encode` and `memory_mask`, which a subclass defines.

    Its constructor makes the parts below.
    """

    forward_methods: ClassVar[tuple[str, ...]] = ("start", "step", "step_with_attention")

    config: C
    target_embedding: nn.Embedding
    positions: nn.Module
    dropout: nn.Module
    decoder: Decoder
    output: Linear

    @property
    def scale(self) -> float:
        """Factor of the embeddings."""
        return math.sqrt(self.config.dim) if self.config.scale_embedding else 1.0

    def encode(self, source: Tensor) -> Float[Tensor, "batch source dim"]:
        """Return a contextual vector for every part of the source."""
        raise NotImplementedError

    def memory_mask(self, source: Tensor) -> Mask | None:
        """Hide padding of the source; None if there is none."""
        raise NotImplementedError

    def write(
        self,
        target: Int[Tensor, "batch target"],
        memory: Float[Tensor, "source part source_dim"],
        mask: Mask | None,
        scored: Bool[Tensor, "batch target"] | None,
        readout: OutputFn,
        owners: Kept | None = None,
    ) -> Float[Tensor, "..."]:
        """Score every next token of a target, given what was read (teacher forcing).

        `owners` has the source of each target where several share one; None: one each.
        """
        x = self.dropout(self.place(self.embed(self.target_embedding, target)))
        x = self.decoder(x, memory, mask, owners)
        return readout(self.output, x if scored is None else x[scored])

    def start(self, source: Tensor, beams: int, max_length: int) -> DecoderState:
        """Encode the sources once and allocate room for max_length tokens a beam."""
        memory = self.encode(source)
        config = self.config
        shape = (len(source) * beams, config.heads, max_length, config.dim // config.heads)
        caches = [KeyValueCache.empty(*shape, memory) for _ in self.decoder.blocks]
        sources = self.decoder.project(memory)
        return DecoderState(sources, self.memory_mask(source), caches, beams)

    def step(self, tokens: PerBeam, state: DecoderState) -> tuple[Scores, DecoderState]:
        """Feed one token a beam; return log-probabilities of the next, and the new state."""
        scores, after, _ = self._step(tokens, state)
        return scores, after

    def step_with_attention(
        self, tokens: PerBeam, state: DecoderState
    ) -> tuple[Scores, DecoderState, SourceWeights]:
        """Step, and return the attention over the source too: the mean over heads of one layer.

        Of the last layer but one where there are several, which is where Garg et al. 2019, "Jointly
        Learning to Align and Translate with Transformer Models", found alignments.
        """
        layer = max(len(self.decoder.blocks) - 2, 0)
        scores, after, weights = self._step(tokens, state, weights_of=layer)
        assert weights is not None
        return scores, after, weights.mean(dim=1)

    def _step(
        self, tokens: PerBeam, state: DecoderState, weights_of: int | None = None
    ) -> tuple[Scores, DecoderState, Tensor | None]:
        x = self.embed(self.target_embedding, tokens.flatten()[:, None])
        x = self.place(x, first=state.caches[0].length).view(*tokens.shape, -1)
        given = state.sources, state.source_mask, state.caches
        x, caches, weights = self.decoder.step(self.dropout(x), *given, weights_of=weights_of)
        scores = F.log_softmax(self.output(x).float(), dim=-1)
        return scores, replace(state, caches=caches), weights

    def reorder(self, state: DecoderState, beams: PerBeam) -> DecoderState:
        """Let beam b of a sentence go on from its beam `beams[sentence, b]`."""
        rows = rows_of_beams(beams)
        return replace(state, caches=[cache.select(rows) for cache in state.caches])

    def keep(self, state: DecoderState, sentences: Kept) -> DecoderState:
        """Drop all sentences but these, with their beams."""
        rows = rows_of_sentences(sentences, state.beams)
        sources = [source.select(sentences) for source in state.sources]
        mask = None if state.source_mask is None else state.source_mask[sentences]
        caches = [cache.select(rows) for cache in state.caches]
        return DecoderState(sources, mask, caches, state.beams)

    def embed(self, embedding: nn.Embedding, tokens: TokenIds) -> Tokens:
        """Look up token vectors."""
        check_ids(tokens)
        start_text()
        return embedding(tokens) * self.scale

    def place(self, x: Tokens, first: int = 0) -> Tokens:
        """Add the positions first, first + 1, ... to token vectors."""
        return self.positions(x, first=first)


class ReadGraph(nn.Module):
    """What is read, as keys and values of each decoder layer, and which of it is no padding."""

    def __init__(self, model: EncoderDecoder[Any]) -> None:
        super().__init__()
        self.model = model

    def forward(self, source: Tensor) -> tuple[Shaped[Tensor, "sentence ..."], ...]:
        """Encode the sources: texts (sentence, token), or images (sentence, channel, y, x).

        Returns:
            Which parts are no padding (sentence, part); keys and values (sentence, head, part,
            size), layer by layer.
        """
        memory = self.model.encode(source)
        mask = self.model.memory_mask(source)
        if mask is None:
            real = torch.ones(memory.shape[:2], dtype=torch.bool, device=memory.device)
        else:
            real = mask[:, 0, 0]
        return real, *(each for found in self.model.decoder.project(memory) for each in found[:2])


class WriteGraph(nn.Module):
    """Scores of the next token of each beam, and the grown cache."""

    def __init__(self, model: EncoderDecoder[Any]) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        tokens: Int[Tensor, "sentence beam"],
        source_mask: Bool[Tensor, "sentence part"],
        given: list[Float[Tensor, "sentence ..."]],
    ) -> tuple[Float[Tensor, "sentence beam ..."], ...]:
        """Feed one token a beam.

        Args:
            tokens: the newest of each beam.
            source_mask: which parts of the source are no padding.
            given: keys and values of the sources (sentence, head, part, size), layer by layer, then
                those of the past (sentence, beam, head, past, size).

        Returns:
            Scores (sentence, beam, vocabulary), attention to the source (sentence, beam, part), and
            the grown past.
        """
        layers = 2 * len(self.model.decoder.blocks)
        state = DecoderState(
            [KeyValue(*pair) for pair in pairs(given[:layers])],
            source_mask[:, None, None],
            [GraphCache.of_beams(*pair) for pair in pairs(given[layers:])],
            tokens.shape[1],
        )
        scores, after, weights = self.model.step_with_attention(tokens, state)
        grown = [
            each.unflatten(0, tokens.shape)
            for cache in after.caches
            for each in (cache.key_storage, cache.value_storage)
        ]
        return scores, weights, *grown
