"""Constructors of the parts that a Config names: each variant is a class of its own."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator
from torch import nn

from manyheads.errors import nearest
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.layers.feedforward import FeedForward, GatedFeedForward, QuickGELU
from manyheads.nn.layers.positions import (
    LearnedPositions,
    NoPositions,
    SinusoidalHalfPositions,
    SinusoidalPositions,
)
from manyheads.nn.layers.residual import PostNorm, PreNorm
from manyheads.registration import register

Norm = Literal["post", "pre"]
Activation = Literal["relu", "gelu", "gelu-tanh", "quick-gelu", "silu"]
Positions = Literal["sinusoidal", "sinusoidal-halves", "learned", "none"]
FeedForwardName = Literal[Activation, "swiglu"]

RESIDUALS: dict[Norm, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}
ACTIVATIONS: dict[Activation, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    # Two approximations of it, which weights that learned with them need.
    "gelu-tanh": partial(nn.GELU, approximate="tanh"),  # GPT-2, SigLIP
    "quick-gelu": QuickGELU,  # CLIP
    "silu": nn.SiLU,  # also called swish
}
POSITIONS: dict[str, type[nn.Module]] = {
    "sinusoidal": SinusoidalPositions,
    "sinusoidal-halves": SinusoidalHalfPositions,
    "learned": LearnedPositions,
    "none": NoPositions,
    "rotary": NoPositions,  # nothing is added to vectors: see `text_encoder.self_attention`
}
ATTENTIONS: dict[str, type[MultiHeadAttention]] = {"softmax": MultiHeadAttention}


def _known(what: str, table: Mapping[str, object], name: str) -> str:
    if name not in table:
        allowed = f"{nearest(name, table)}Allowed: {', '.join(table)}"
        raise ValueError(f"there is no {what} {name!r}{allowed}")
    return name


# Those of the package, and what `register_positions` and `register_attention` have added.
TokenPositions = Annotated[
    Literal[Positions, "rotary"] | str,
    AfterValidator(partial(_known, "kind of positions", POSITIONS)),
]
AttentionName = Annotated[
    Literal["softmax"] | str, AfterValidator(partial(_known, "kind of attention", ATTENTIONS))
]


def register_positions(name: str, part: type[nn.Module]) -> None:
    """Add positions of texts under a new name, for recipes (`model.positions`).

    Args:
        name: such as "mine".
        part: a class that is called with a number of tokens, which texts may exceed, and the width;
            its `forward(x, first=0)` adds the positions first, first + 1, ... to x (batch, token,
            dim).

    Raises:
        UsageError: the name is no text, empty, or exists; the class is no torch module.
    """
    wanted = "Positions are a class that inherits torch.nn.Module."
    lacks = ["being such a class"] * (not (isinstance(part, type) and issubclass(part, nn.Module)))
    register(POSITIONS, "a kind of positions", name, part, wanted, lacks)


def register_attention(name: str, part: type[MultiHeadAttention]) -> None:
    """Add self-attention of texts under a new name, for recipes (`model.attention`).

    Args:
        name: such as "mine".
        part: a class that inherits `MultiHeadAttention` and is built as it is: with the width and
            the number of heads, `dropout` and `rotate`.

    Raises:
        UsageError: the name is no text, empty, or exists; the class inherits another one.
    """
    own = isinstance(part, type) and issubclass(part, MultiHeadAttention)
    wanted = "An attention is a class that inherits manyheads.nn.MultiHeadAttention."
    lacks = ["being such a class"] * (not own)
    register(ATTENTIONS, "a kind of attention", name, part, wanted, lacks)


def modules_of_parts(config: object, changes: Mapping[str, object]) -> list[str]:
    """Name the modules of the parts that a Config names, with a recipe's changes of it."""
    named = ((ATTENTIONS, "attention"), (POSITIONS, "positions"))
    names = [(table, changes.get(key, getattr(config, key, None))) for table, key in named]
    return [table[str(name)].__module__ for table, name in names if str(name) in table]


def final_norm(norm: Norm, dim: int, eps: float) -> nn.Module:
    """Build the norm after a stack: pre-norm blocks leave their sum unnormalised."""
    return nn.LayerNorm(dim, eps=eps) if norm == "pre" else nn.Identity()


def feedforward(
    name: FeedForwardName, dim: int, ffn_dim: int, *, dropout: float, gate_bias: bool = False
) -> FeedForward | GatedFeedForward:
    """Build the feed-forward part for a Config's `activation`; "swiglu" has biases if asked."""
    if name == "swiglu":
        return GatedFeedForward(dim, ffn_dim, nn.SiLU(), dropout=dropout, bias=gate_bias)
    return FeedForward(dim, ffn_dim, ACTIVATIONS[name](), dropout=dropout)
