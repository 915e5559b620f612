"""The encoder-decoder Transformer: Vaswani et al. 2017, "Attention Is All You Need"."""

import math
from dataclasses import dataclass, replace

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads.models.components import POSITIONS, FeedForwardName, Norm, TokenPositions, final_norm
from manyheads.models.text_encoder import (
    TextBlockConfig,
    block_feedforward,
    encoder_blocks,
    residual,
    self_attention,
)
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.blocks.block import DecoderBlock
from manyheads.nn.blocks.stack import Decoder, Encoder
from manyheads.nn.layers import initial
from manyheads.nn.layers.cache import KeyValue, KeyValueCache, rows_of_beams, rows_of_sentences
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.linear import Linear
from manyheads.nn.layers.masks import padding_mask
from manyheads.nn.layers.output_head import OutputFn, logits
from manyheads.nn.recording.tracking import start_text
from manyheads.nn.shapes import (
    Kept,
    PerBeam,
    Scores,
    SourceIds,
    SourceWeights,
    TokenIds,
    Tokens,
    check_ids,
)


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(TextBlockConfig):
    """Shape and parts of a Transformer; the defaults are the paper's base model (table 3)."""

    tasks = ("translate",)
    starts_from = ("generate", "fill")
    exports = ("marian",)

    vocabulary: int = 37000
    target_vocabulary: int | None = None  # a vocabulary of the target's own; None: one for both
    dim: int = 512
    heads: int = 8
    ffn_dim: int = 2048
    encoder_layers: int = 6
    decoder_layers: int = 6
    # One matrix for both embeddings and the output layer (section 3.4); with a vocabulary of the
    # target's own, one for its embedding and the output layer.
    tied: bool = True
    scale_embedding: bool = True  # by the root of dim (section 3.4)
    output_bias: bool = False
    norm: Norm = "post"
    activation: FeedForwardName = "relu"
    positions: TokenPositions = "sinusoidal"
    pad: int = 0
    start: int = 1
    end: int = 2

    def build(self) -> "Transformer":
        """Build the model with fresh weights."""
        return Transformer(self)


@dataclass(frozen=True)
class DecoderState:
    """State of decoding between steps; rows of a cache are sentence x beam."""

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
        blocks = encoder_blocks(config, config.encoder_layers)
        self.encoder = Encoder(blocks, final_norm(config.norm, config.dim, config.norm_eps))
        decoder_blocks = [
            DecoderBlock(
                self_attention(config),
                MultiHeadAttention(config.dim, config.heads, dropout=config.attention_dropout),
                block_feedforward(config),
                residual(config),
            )
            for _ in range(config.decoder_layers)
        ]
        self.decoder = Decoder(decoder_blocks, final_norm(config.norm, config.dim, config.norm_eps))
        initial.xavier(self)
        initial.embeddings(self)

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        target: Int[Tensor, "batch target"],
        scored: Bool[Tensor, "batch target"] | None = None,
        readout: OutputFn = logits,
    ) -> Float[Tensor, "..."]:
        """Score every next token of a target that starts with the start token (teacher forcing).

        Args:
            source: token ids, padded.
            target: token ids, padded.
            scored: positions to score, which spares the output layer the others; all if None.
            readout: function of the output layer and the decoder's vectors: logits, or a loss.

        Returns:
            Logits (batch, target, vocabulary) or (scored, vocabulary), or whatever readout returns.
        """
        memory = self.encode(source)
        x = self.dropout(self.positions(self._embed(self.target_embedding, target)))
        x = self.decoder(x, memory, padding_mask(source, self.config.pad))
        return readout(self.output, x if scored is None else x[scored])

    def encode(self, source: Int[Tensor, "batch source"]) -> Float[Tensor, "batch source dim"]:
        """Return a contextual vector for every source token."""
        x = self.dropout(self.positions(self._embed(self.embedding, source)))
        return self.encoder(x, padding_mask(source, self.config.pad))

    def start(self, source: SourceIds, beams: int, max_length: int) -> DecoderState:
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
        x = self._embed(self.target_embedding, tokens.flatten()[:, None])
        x = self.positions(x, first=state.caches[0].length).view(*tokens.shape, -1)
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
        return DecoderState(
            [source.select(sentences) for source in state.sources],
            state.source_mask[sentences],
            [cache.select(rows) for cache in state.caches],
            state.beams,
        )

    def _embed(self, embedding: nn.Embedding, tokens: TokenIds) -> Tokens:
        check_ids(tokens)
        start_text()
        return embedding(tokens) * self.scale  # section 3.4
