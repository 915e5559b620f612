"""What a word in a Config stands for. A variant is another part, never a branch in a forward."""

from typing import Literal

from torch import nn

from manyheads.nn.positions import LearnedPositions, NoPositions, SinusoidalPositions
from manyheads.nn.residual import PostNorm, PreNorm

Norm = Literal["post", "pre"]
Activation = Literal["relu", "gelu"]
Positions = Literal["sinusoidal", "learned", "none"]

RESIDUALS: dict[Norm, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}
ACTIVATIONS: dict[Activation, type[nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU}
POSITIONS: dict[
    Positions, type[SinusoidalPositions] | type[LearnedPositions] | type[NoPositions]
] = {"sinusoidal": SinusoidalPositions, "learned": LearnedPositions, "none": NoPositions}


def final_norm(norm: Norm, dim: int, eps: float) -> nn.Module:
    """Close a stack: after pre-norm blocks nothing has normalised the sum yet."""
    return nn.LayerNorm(dim, eps=eps) if norm == "pre" else nn.Identity()
