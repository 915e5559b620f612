"""What a word in a Config stands for. A variant is another part, never a branch in a forward."""

from typing import Literal

from torch import nn

from manyheads.nn.alignment import AdditiveScore, DotScore, GeneralScore
from manyheads.nn.feedforward import FeedForward, GatedFeedForward
from manyheads.nn.positions import (
    LearnedPositions,
    NoPositions,
    SinusoidalHalfPositions,
    SinusoidalPositions,
)
from manyheads.nn.recurrent import GRU, LSTM, RNN, Cell
from manyheads.nn.residual import PostNorm, PreNorm
from manyheads.nn.rotary import Rotary, Rotate, unrotated

Norm = Literal["post", "pre"]
Activation = Literal["relu", "gelu", "silu"]
Positions = Literal["sinusoidal", "sinusoidal-halves", "learned", "none"]
FeedForwardName = Literal[Activation, "swiglu"]
TokenPositions = Literal[Positions, "rotary"]

RESIDUALS: dict[Norm, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}
ACTIVATIONS: dict[Activation, type[nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,  # also called swish
}
POSITIONS: dict[
    TokenPositions, type[SinusoidalPositions] | type[LearnedPositions] | type[NoPositions]
] = {
    "sinusoidal": SinusoidalPositions,
    "sinusoidal-halves": SinusoidalHalfPositions,
    "learned": LearnedPositions,
    "none": NoPositions,
    "rotary": NoPositions,  # nothing is added to vectors: see `rotation`
}

CellName = Literal["rnn", "lstm", "gru"]
ScoreName = Literal["none", "additive", "dot", "general"]

CELLS: dict[CellName, Cell] = {"rnn": RNN, "lstm": LSTM, "gru": GRU}
SCORES: dict[ScoreName, type[AdditiveScore] | type[DotScore] | type[GeneralScore]] = {
    "additive": AdditiveScore,
    "dot": DotScore,
    "general": GeneralScore,
}


def final_norm(norm: Norm, dim: int, eps: float) -> nn.Module:
    """Close a stack: after pre-norm blocks nothing has normalised the sum yet."""
    return nn.LayerNorm(dim, eps=eps) if norm == "pre" else nn.Identity()


def rotation(positions: TokenPositions, length: int, size: int) -> Rotate:
    """What self-attention does to queries and keys, in heads of this size."""
    return Rotary(length, size) if positions == "rotary" else unrotated


def feedforward(
    name: FeedForwardName, dim: int, hidden: int, *, dropout: float
) -> FeedForward | GatedFeedForward:
    """Build the feed-forward part that a Config's `activation` names."""
    if name == "swiglu":
        return GatedFeedForward(dim, hidden, nn.SiLU(), dropout=dropout)
    return FeedForward(dim, hidden, ACTIVATIONS[name](), dropout=dropout)
