"""The encoder-decoder Transformer: Vaswani et al. 2017, "Attention Is All You Need"."""

import math
from dataclasses import dataclass, replace

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads.models.parts import (
    POSITIONS,
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
from manyheads.nn.block import DecoderBlock, EncoderBlock
from manyheads.nn.cache import KeyValue, KeyValueCache, rows_of_beams, rows_of_sentences
from manyheads.nn.dropout import Dropout
from manyheads.nn.feedforward import FeedForward, GatedFeedForward
from manyheads.nn.linear import Linear
from manyheads.nn.masks import padding_mask
from manyheads.nn.places import leave
from manyheads.nn.readout import Readout, logits
from manyheads.nn.residual import PostNorm, PreNorm
from manyheads.nn.stack import Decoder, Encoder


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Shape and parts of a Transformer; the defaults are the paper's base model (table 3)."""

    vocabulary: int = 37000
    target_vocabulary: int | None = None  # a vocabulary of the target's own; None: one for both
    dim: int = 512
    heads: int = 8
    hidden: int = 2048
    encoder_layers: int = 6
    decoder_layers: int = 6
    dropout: float = 0.1
    attention_dropout: float = 0.0  # more than 0 leaves the fast path of the fused kernel
    # One matrix for both embeddings and the output layer (section 3.4); with a vocabulary of the
    # target's own, one for its embedding and the output layer.
    tied: bool = True
    scale_embedding: bool = True  # by the root of dim (section 3.4)
    output_bias: bool = False
    norm: Norm = "post"
    activation: FeedForwardName = "relu"  # "swiglu" has three matrices of this width, not two
    positions: TokenPositions = "sinusoidal"
    max_length: int = 512  # of learned positions; sinusoids reach beyond it
    norm_eps: float = 1e-5
    pad: int = 0
    start: int = 1
    end: int = 2


@dataclass(frozen=True)
class DecoderState:
    """All that decoding carries from step to step; rows of a cache are sentence x beam."""

    sources: list[KeyValue]
    source_mask: Tensor
    caches: list[KeyValueCache]
    beams: int


class Transformer(nn.Module):
    """Token ids in, logits over the vocabulary out; decodes through the Step protocol."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        targets = config.target_vocabulary or config.vocabulary
        self.scale = math.sqrt(config.dim) if config.scale_embedding else 1.0
        self.embedding = nn.Embedding(config.vocabulary, config.dim, padding_idx=config.pad)
        self.target_embedding = (
            self.embedding
            if config.tied and config.target_vocabulary is None
            else nn.Embedding(targets, config.dim, padding_idx=config.pad)
        )
        self.output = Linear(config.dim, targets, bias=config.output_bias)
        if config.tied:
            self.output.weight = self.target_embedding.weight
        self.positions = POSITIONS[config.positions](config.max_length, config.dim)
        self.dropout = Dropout(config.dropout)
        encoder_blocks = [
            EncoderBlock(_self(config), _feedforward(config), lambda: _residual(config))
            for _ in range(config.encoder_layers)
        ]
        decoder_blocks = [
            DecoderBlock(
                _self(config),
                _cross(config),
                _feedforward(config),
                lambda: _residual(config),
            )
            for _ in range(config.decoder_layers)
        ]
        self.encoder = Encoder(encoder_blocks, final_norm(config.norm, config.dim, config.norm_eps))
        self.decoder = Decoder(decoder_blocks, final_norm(config.norm, config.dim, config.norm_eps))
        initial.xavier(self)
        initial.embeddings(self)

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        target: Int[Tensor, "batch target"],
        scored: Bool[Tensor, "batch target"] | None = None,
        readout: Readout = logits,
    ) -> Float[Tensor, "..."]:
        """Score every next token of a target that starts with the start token (teacher forcing).

        Args:
            source: token ids, padded.
            target: token ids, padded.
            scored: positions to score, which spares the output layer the others; all if None.
            readout: what to make of the decoder's answer and the output layer: logits, or a loss.

        Returns:
            Logits (batch, target, vocabulary) or (scored, vocabulary), or whatever readout returns.
        """
        memory = self.encode(source)
        x = self.dropout(self.positions(self._embed(self.target_embedding, target)))
        x = self.decoder(x, memory, padding_mask(source, self.config.pad))
        return readout(self.output, x if scored is None else x[scored])

    def encode(self, source: Int[Tensor, "batch source"]) -> Float[Tensor, "batch source dim"]:
        """Give every source token a vector that knows its sentence."""
        x = self.dropout(self.positions(self._embed(self.embedding, source)))
        return self.encoder(x, padding_mask(source, self.config.pad))

    def start(
        self, source: Int[Tensor, "sentence source"], beams: int, max_length: int
    ) -> DecoderState:
        """Encode the sentences once and allocate room for max_length tokens a beam."""
        memory = self.encode(source)
        config = self.config
        rows, size = len(source) * beams, config.dim // config.heads
        caches = [
            KeyValueCache.empty(rows, config.heads, max_length, size, memory)
            for _ in self.decoder.blocks
        ]
        sources = self.decoder.project(memory)
        return DecoderState(sources, padding_mask(source, config.pad), caches, beams)

    def step(
        self, tokens: Int[Tensor, "sentence beam"], state: DecoderState
    ) -> tuple[Float[Tensor, "sentence beam vocabulary"], DecoderState]:
        """Feed one token a beam; return log-probabilities of the next, and the new state."""
        x = self._embed(self.target_embedding, tokens.flatten()[:, None])
        x = self.positions(x, first=state.caches[0].length).view(*tokens.shape, -1)
        x, caches = self.decoder.step(
            self.dropout(x), state.sources, state.source_mask, state.caches
        )
        return F.log_softmax(self.output(x).float(), dim=-1), replace(state, caches=caches)

    def reorder(self, state: DecoderState, beams: Int[Tensor, "sentence beam"]) -> DecoderState:
        """Let beam b of a sentence go on from its beam `beams[sentence, b]`."""
        rows = rows_of_beams(beams)
        return replace(state, caches=[cache.select(rows) for cache in state.caches])

    def keep(self, state: DecoderState, sentences: Int[Tensor, " kept"]) -> DecoderState:
        """Drop all sentences but these, with their beams."""
        rows = rows_of_sentences(sentences, state.beams)
        return DecoderState(
            [KeyValue(source.k[sentences], source.v[sentences]) for source in state.sources],
            state.source_mask[sentences],
            [cache.select(rows) for cache in state.caches],
            state.beams,
        )

    def _embed(
        self, embedding: nn.Embedding, tokens: Int[Tensor, "batch token"]
    ) -> Float[Tensor, "batch token dim"]:
        leave()
        return embedding(tokens) * self.scale  # section 3.4


def _self(config: TransformerConfig) -> MultiHeadAttention:
    rotate = rotation(config.positions, config.max_length, config.dim // config.heads)
    return MultiHeadAttention(
        config.dim, config.heads, dropout=config.attention_dropout, rotate=rotate
    )


def _cross(config: TransformerConfig) -> MultiHeadAttention:
    return MultiHeadAttention(config.dim, config.heads, dropout=config.attention_dropout)


def _feedforward(config: TransformerConfig) -> FeedForward | GatedFeedForward:
    return feedforward(config.activation, config.dim, config.hidden, dropout=config.dropout)


def _residual(config: TransformerConfig) -> PostNorm | PreNorm:
    return RESIDUALS[config.norm](config.dim, dropout=config.dropout, eps=config.norm_eps)
