"""What next-token and masked-token language models share: one encoder stack over one text."""

import math
from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from manyheads.models.parts import POSITIONS
from manyheads.models.text_encoder import TextEncoderConfig, text_encoder
from manyheads.nn import initial
from manyheads.nn.dropout import Dropout
from manyheads.nn.linear import Linear
from manyheads.nn.places import leave


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
        self.embedding = nn.Embedding(config.vocabulary, config.dim, padding_idx=config.pad)
        self.output = Linear(config.dim, config.vocabulary, bias=False)
        self.output.weight = self.embedding.weight
        self.positions = POSITIONS[config.positions](config.max_length, config.dim)
        self.dropout = Dropout(config.dropout)
        self.scale = math.sqrt(config.dim)
        self.encoder = text_encoder(config)
        initial.embeddings(self)

    def embed(
        self, tokens: Int[Tensor, "batch token"], first: int = 0
    ) -> Float[Tensor, "batch token dim"]:
        """Look up tokens that stand at the positions first, first + 1, ..."""
        leave()
        return self.dropout(self.positions(self.embedding(tokens) * self.scale, first=first))
