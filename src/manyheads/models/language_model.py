"""Base of next-token and masked-token language models: one encoder stack over one text."""

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.models.components import POSITIONS
from manyheads.models.text_encoder import TextEncoderConfig, text_encoder
from manyheads.nn.layers import initial_weights as initial
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.output_head import OutputFn, logits, output_layer
from manyheads.nn.recording.tracking import start_text
from manyheads.nn.shapes import ChosenTokens, Mask, TokenIds, Tokens, check_ids


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig(TextEncoderConfig):
    """Shape and parts of a language model."""

    vocabulary: int = 32000
    pad: int = 0
    start: int = 1
    end: int = 2


class LanguageModel(nn.Module):
    """Embedding, positions, encoder stack, and the embedding once more as the output layer.

    Embeddings are scaled as a Transformer's are (Vaswani et al. 2017, section 3.4), so that a
    trained stack can become an encoder or a decoder there.
    """

    def __init__(self, config: LanguageModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.dim, padding_idx=config.pad)
        self.output = output_layer(self.embedding, tied=True)
        self.positions = POSITIONS[config.positions](config.max_length, config.dim)
        self.dropout = Dropout(config.dropout)
        self.scale = math.sqrt(config.dim)
        self.encoder = text_encoder(config)
        initial.embeddings(self)

    def forward(
        self, tokens: TokenIds, scored: ChosenTokens | None = None, readout: OutputFn = logits
    ) -> Float[Tensor, "..."]:
        """Score every candidate for each token, from those that `mask` lets it see.

        `scored`, `readout` and the result are those of `Transformer`.
        """
        x = self.encoder(self.embed(tokens), self.mask(tokens))
        return readout(self.output, x if scored is None else x[scored])

    def mask(self, tokens: TokenIds) -> Mask:
        """Say which tokens of a text may see which."""
        raise NotImplementedError

    def embed(self, tokens: TokenIds, first: int = 0) -> Tokens:
        """Embed tokens at positions first, first + 1, ..."""
        check_ids(tokens)
        start_text()
        return self.dropout(self.positions(self.embedding(tokens) * self.scale, first=first))
