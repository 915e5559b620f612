"""One answer a token: a tagger over recurrent cells, or over the encoder stack (T1).

Here input and output match one to one, which is where a plain recurrent network serves. What
stands between embedding and answer only has to turn token vectors into token vectors that know
their context; so cells and attention can be compared on the same task.
"""

import math
from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.parts import CELLS, POSITIONS, CellName, TokenPositions
from manyheads.models.text_encoder import TextEncoderConfig, text_encoder
from manyheads.nn import initial
from manyheads.nn.dropout import Dropout
from manyheads.nn.linear import Linear
from manyheads.nn.places import leave
from manyheads.nn.readout import Readout, logits
from manyheads.nn.recurrent import Recurrent, RecurrentStack


@dataclass(frozen=True, kw_only=True)
class TaggerConfig:
    """What every tagger has."""

    vocabulary: int = 2000
    classes: int = 2
    dim: int = 128
    layers: int = 1
    dropout: float = 0.1
    pad: int = 0


@dataclass(frozen=True, kw_only=True)
class RecurrentTaggerConfig(TaggerConfig):
    """A tagger that reads one token after another: Elman 1990, Hochreiter & Schmidhuber 1997."""

    cell: CellName = "lstm"
    hidden: int = 256  # of a state; each of two directions has half of it
    bidirectional: bool = True  # or a token's answer knows only what stands before it

    def __post_init__(self) -> None:
        """Refuse a width that two directions cannot share.

        Raises:
            UsageError: it is odd.
        """
        if self.bidirectional and self.hidden % 2:
            raise UsageError(
                f"hidden is {self.hidden}, but each of two directions has half of it: choose an "
                "even number, or bidirectional = false."
            )


@dataclass(frozen=True, kw_only=True)
class EncoderTaggerConfig(TextEncoderConfig, TaggerConfig):
    """A tagger that sees all tokens at once: the encoder of Vaswani et al. 2017."""

    dim: int = 128
    layers: int = 2
    heads: int = 4
    hidden: int = 256
    positions: TokenPositions = "sinusoidal"


class RecurrentContext(nn.Module):
    """Read the tokens in order, or in both orders; padding behind a text is not read."""

    def __init__(self, config: RecurrentTaggerConfig) -> None:
        super().__init__()
        sizes = [config.dim, *[config.hidden] * (config.layers - 1)]
        layers = [
            Recurrent(CELLS[config.cell], size, config.hidden, bidirectional=config.bidirectional)
            for size in sizes
        ]
        self.stack = RecurrentStack("encoder", layers, dropout=config.dropout)
        self.width = config.hidden
        for layer in layers:
            layer.reset_parameters()

    def forward(
        self, x: Float[Tensor, "batch token dim"], real: Bool[Tensor, "batch token"]
    ) -> Float[Tensor, "batch token width"]:
        """Give every token a vector that knows what was read before it."""
        return self.stack(x, lengths=real.sum(dim=1))[0]


class AttentiveContext(nn.Module):
    """Let every token attend to every other one."""

    def __init__(self, config: EncoderTaggerConfig) -> None:
        super().__init__()
        self.positions = POSITIONS[config.positions](config.max_length, config.dim)
        self.encoder = text_encoder(config)
        self.width = config.dim

    def forward(
        self, x: Float[Tensor, "batch token dim"], real: Bool[Tensor, "batch token"]
    ) -> Float[Tensor, "batch token width"]:
        """Give every token a vector that knows the whole text."""
        return self.encoder(self.positions(x), real[:, None, None, :])


class Tagger(nn.Module):
    """Token ids in, logits over the tags of each out."""

    def __init__(self, config: RecurrentTaggerConfig | EncoderTaggerConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.dim, padding_idx=config.pad)
        self.scale = math.sqrt(config.dim)
        self.dropout = Dropout(config.dropout)
        self.context = (
            AttentiveContext(config)
            if isinstance(config, EncoderTaggerConfig)
            else RecurrentContext(config)
        )
        self.output = Linear(self.context.width, config.classes)
        initial.embeddings(self)

    def forward(
        self,
        tokens: Int[Tensor, "batch token"],
        scored: Bool[Tensor, "batch token"] | None = None,
        readout: Readout = logits,
    ) -> Float[Tensor, "..."]:
        """Score the tags of every token.

        Args:
            tokens: token ids, padded.
            scored: positions to score, all if None.
            readout: what to make of the vectors there and the output layer.

        Returns:
            Logits (batch, token, classes), or (scored positions, classes); else whatever readout
            returns.
        """
        leave()
        x = self.dropout(self.embedding(tokens) * self.scale)
        x = self.context(x, tokens != self.config.pad)
        x = self.dropout(x)
        return readout(self.output, x if scored is None else x[scored])
