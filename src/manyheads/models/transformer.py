"""The encoder-decoder Transformer: Vaswani et al. 2017, "Attention Is All You Need"."""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads.models.components import POSITIONS, FeedForwardName, Norm, TokenPositions, final_norm
from manyheads.models.encoder_decoder import DecoderConfig, EncoderDecoder, decoder
from manyheads.models.exported_graphs import GraphInput, tokens_input
from manyheads.models.text_encoder import encoder_blocks
from manyheads.nn.blocks.stack import Encoder
from manyheads.nn.layers import initial_weights as initial
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.masks import padding_mask
from manyheads.nn.layers.output_head import OutputFn, logits, output_layer
from manyheads.nn.shapes import Mask


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(DecoderConfig):
    """Shape and parts of a Transformer; the defaults are the paper's base model (table 3)."""

    tasks = ("translate",)
    starts_from = ("generate", "fill", "translate")
    exports = ("marian", "ctranslate2")

    vocabulary: int = 37000
    target_vocabulary: int | None = None  # a vocabulary of the target's own; None: one for both
    dim: int = 512
    heads: int = 8
    ffn_dim: int = 2048
    encoder_layers: int = 6
    # One matrix for both embeddings and the output layer (section 3.4); with a vocabulary of the
    # target's own, one for its embedding and the output layer.
    tied: bool = True
    norm: Norm = "post"
    activation: FeedForwardName = "relu"
    positions: TokenPositions = "sinusoidal"

    @property
    def source_input(self) -> GraphInput:
        """Ids of the source's tokens."""
        return tokens_input(name="source", rows="sentences")

    def build(self) -> "Transformer":
        """Build the model with fresh weights."""
        return Transformer(self)


class Transformer(EncoderDecoder[TransformerConfig]):
    """Token ids in, logits over the vocabulary out; decodes through the Step protocol."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        pad, targets = config.pad, config.target_vocabulary or config.vocabulary
        self.embedding = nn.Embedding(config.vocabulary, config.dim, padding_idx=pad)
        self.target_embedding = self.embedding
        if not config.tied or config.target_vocabulary is not None:
            self.target_embedding = nn.Embedding(targets, config.dim, padding_idx=pad)
        self.output = output_layer(self.target_embedding, tied=config.tied, bias=config.output_bias)
        self.positions = POSITIONS[config.positions](config.max_length, config.dim)
        self.dropout = Dropout(config.dropout)
        blocks = encoder_blocks(config, config.encoder_layers)
        self.encoder = Encoder(blocks, final_norm(config.norm, config.dim, config.norm_eps))
        self.decoder = decoder(config)
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
        return self.write(target, self.encode(source), self.memory_mask(source), scored, readout)

    def encode(self, source: Int[Tensor, "batch source"]) -> Float[Tensor, "batch source dim"]:
        """Return a contextual vector for every source token."""
        x = self.dropout(self.positions(self.embed(self.embedding, source)))
        return self.encoder(x, padding_mask(source, self.config.pad))

    def memory_mask(self, source: Int[Tensor, "batch source"]) -> Mask:
        """Hide padding."""
        return padding_mask(source, self.config.pad)
