"""One tag per token: a tagger over recurrent cells, or over the encoder stack (T1).

Input and output match one to one, which suits a plain recurrent network. The part between
embedding and output layer maps token vectors to contextual token vectors, so that cells and
attention can be compared on the same task.
"""

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.components import POSITIONS, TokenPositions
from manyheads.models.model_config import ModelConfig
from manyheads.models.text_encoder import TextEncoderConfig, text_encoder
from manyheads.nn.layers import initial_weights as initial
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.linear import Linear
from manyheads.nn.layers.output_head import OutputFn, logits
from manyheads.nn.recording.tracking import start_text
from manyheads.nn.rnn import CELLS, CellName, Recurrent, RecurrentStack
from manyheads.nn.shapes import ChosenTokens, TokenIds, Tokens, check_ids


@dataclass(frozen=True, kw_only=True)
class TaggerConfig(ModelConfig):
    """The keys that every tagger has."""

    tasks = ("tag",)

    vocabulary: int = 2000
    classes: int = 2
    dim: int = 128
    layers: int = 1
    dropout: float = 0.1
    pad: int = 0

    def context(self) -> "RecurrentContext | AttentiveContext":
        """Build the part between embedding and output layer."""
        raise NotImplementedError

    def build(self) -> "Tagger":
        """Build the model with fresh weights."""
        return Tagger(self)


@dataclass(frozen=True, kw_only=True)
class RecurrentTaggerConfig(TaggerConfig):
    """A tagger that reads one token after another: Elman 1990, Hochreiter & Schmidhuber 1997."""

    cell: CellName = "lstm"
    hidden_size: int = 256  # of a state; each of two directions has half of it
    bidirectional: bool = True  # False: a token's tags depend on earlier tokens only

    def __post_init__(self) -> None:
        if self.bidirectional and self.hidden_size % 2:
            raise UsageError(
                f"hidden_size is {self.hidden_size}, but each of two directions has half of it: "
                "choose an even number, or bidirectional = false."
            )

    def context(self) -> "RecurrentContext":
        """Build recurrent layers."""
        return RecurrentContext(self)


@dataclass(frozen=True, kw_only=True)
class EncoderTaggerConfig(TextEncoderConfig, TaggerConfig):
    """A tagger that sees all tokens at once: the encoder of Vaswani et al. 2017."""

    dim: int = 128
    layers: int = 2
    heads: int = 4
    ffn_dim: int = 256
    positions: TokenPositions = "sinusoidal"

    def context(self) -> "AttentiveContext":
        """Build an encoder stack."""
        return AttentiveContext(self)


class RecurrentContext(nn.Module):
    """Read the tokens in order, or in both orders; padding behind a text is not read."""

    def __init__(self, config: RecurrentTaggerConfig) -> None:
        super().__init__()
        sizes = [config.dim, *[config.hidden_size] * (config.layers - 1)]
        layers = [
            Recurrent(
                CELLS[config.cell], size, config.hidden_size, bidirectional=config.bidirectional
            )
            for size in sizes
        ]
        self.stack = RecurrentStack("encoder", layers, dropout=config.dropout)
        self.width = config.hidden_size
        for layer in layers:
            layer.reset_parameters()

    def forward(self, x: Tokens, real: ChosenTokens) -> Float[Tensor, "batch token width"]:
        """Return for every token a vector of what was read up to it."""
        return self.stack(x, lengths=real.sum(dim=1))[0]


class AttentiveContext(nn.Module):
    """Let every token attend to every other one."""

    def __init__(self, config: EncoderTaggerConfig) -> None:
        super().__init__()
        self.positions = POSITIONS[config.positions](config.max_length, config.dim)
        self.encoder = text_encoder(config)
        self.width = config.dim

    def forward(self, x: Tokens, real: ChosenTokens) -> Float[Tensor, "batch token width"]:
        """Return for every token a vector of the whole text."""
        return self.encoder(self.positions(x), real[:, None, None, :])


class Tagger(nn.Module):
    """Token ids in, logits over the tags of each out."""

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.dim, padding_idx=config.pad)
        self.scale = math.sqrt(config.dim)
        self.dropout = Dropout(config.dropout)
        self.context = config.context()
        self.output = Linear(self.context.width, config.classes)
        initial.embeddings(self)

    def forward(
        self, tokens: TokenIds, scored: ChosenTokens | None = None, readout: OutputFn = logits
    ) -> Float[Tensor, "..."]:
        """Score the tags of every token; `scored` and `readout` are those of `Transformer`."""
        check_ids(tokens)
        start_text()
        x = self.dropout(self.embedding(tokens) * self.scale)
        x = self.dropout(self.context(x, tokens != self.config.pad))
        return readout(self.output, x if scored is None else x[scored])
