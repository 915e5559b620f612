"""Constructors of the parts that a Config names: each variant is a class of its own."""

from collections.abc import Callable
from functools import partial
from typing import Literal

from torch import nn

from manyheads.nn.attention.recurrent_attention import AdditiveScore, DotScore, GeneralScore
from manyheads.nn.attention.rotary import Rotary, Rotate, unrotated
from manyheads.nn.layers.feedforward import FeedForward, GatedFeedForward, QuickGELU
from manyheads.nn.layers.positions import (
    LearnedPositions,
    NoPositions,
    SinusoidalHalfPositions,
    SinusoidalPositions,
)
from manyheads.nn.layers.residual import PostNorm, PreNorm
from manyheads.nn.rnn import GRU, LSTM, RNN, Cell

Norm = Literal["post", "pre"]
Activation = Literal["relu", "gelu", "gelu-tanh", "quick-gelu", "silu"]
Positions = Literal["sinusoidal", "sinusoidal-halves", "learned", "none"]
FeedForwardName = Literal[Activation, "swiglu"]
TokenPositions = Literal[Positions, "rotary"]

RESIDUALS: dict[Norm, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}
ACTIVATIONS: dict[Activation, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    # Two approximations of it, which weights that learned with them need.
    "gelu-tanh": partial(nn.GELU, approximate="tanh"),  # GPT-2, SigLIP
    "quick-gelu": QuickGELU,  # CLIP
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
SCORES: dict[ScoreName, type[AdditiveScore] | type[DotScore]] = {
    "additive": AdditiveScore,
    "dot": DotScore,
    "general": GeneralScore,
}


def final_norm(norm: Norm, dim: int, eps: float) -> nn.Module:
    """Build the norm after a stack: pre-norm blocks leave their sum unnormalised."""
    return nn.LayerNorm(dim, eps=eps) if norm == "pre" else nn.Identity()


def rotation(positions: TokenPositions, length: int, size: int) -> Rotate:
    """Return the rotation of queries and keys for heads of this size; none unless rotary."""
    return Rotary(length, size) if positions == "rotary" else unrotated


def feedforward(
    name: FeedForwardName, dim: int, ffn_dim: int, *, dropout: float, gate_bias: bool = False
) -> FeedForward | GatedFeedForward:
    """Build the feed-forward part for a Config's `activation`; "swiglu" has biases if asked."""
    if name == "swiglu":
        return GatedFeedForward(dim, ffn_dim, nn.SiLU(), dropout=dropout, bias=gate_bias)
    return FeedForward(dim, ffn_dim, ACTIVATIONS[name](), dropout=dropout)
