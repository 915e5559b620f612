"""The encoder stack over the tokens of one image, shared by Vit and Cct."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from manyheads.models.components import RESIDUALS, FeedForwardName, Norm, feedforward
from manyheads.models.model_config import ImageConfig
from manyheads.models.sized_tables import SizedTable, grid_tables
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.relative import RelativeGridPositions
from manyheads.nn.blocks.block import EncoderBlock
from manyheads.nn.blocks.pool import (
    AttentionPool,
    ClassAndMeanPool,
    ClassToken,
    MeanPool,
    PatchMeanPool,
    SequencePool,
    TwoTokens,
    extra_names,
)
from manyheads.nn.layers.feedforward import FeedForward, GatedFeedForward
from manyheads.nn.layers.positions import GridPositions, NoGridPositions, SinusoidalGridPositions
from manyheads.nn.layers.stochastic_depth import linear_decay
from manyheads.nn.shapes import Grid

Pool = Literal[
    "class", "mean", "patch-mean", "class-and-mean", "sequence", "attention", "map", "distilled"
]
Positions = Literal["learned", "sinusoidal-2d", "relative", "none"]

POOLS: dict[Pool, type[ClassToken] | type[MeanPool]] = {
    "class": ClassToken,
    "mean": MeanPool,
    "sequence": SequencePool,
    "attention": AttentionPool,
    "map": AttentionPool,  # with the feed-forward part and the norm of a block, as in SigLIP
    "distilled": TwoTokens,
    "patch-mean": PatchMeanPool,
    "class-and-mean": ClassAndMeanPool,
}
POSITIONS: dict[Positions, type[NoGridPositions]] = {
    "learned": GridPositions,
    "sinusoidal-2d": SinusoidalGridPositions,
    "relative": RelativeGridPositions,
    "none": NoGridPositions,
}


@dataclass(frozen=True, kw_only=True)
class ImageEncoderConfig(ImageConfig):
    """Shape and parts of the stack; the defaults are ViT-B's (Dosovitskiy et al. 2021, table 1)."""

    _width_key = "dim"

    dim: int = 768
    layers: int = 12
    heads: int = 12
    ffn_dim: int = 3072
    dropout: float = 0.0
    attention_dropout: float = 0.0  # more than 0 leaves the fast path of the fused kernel
    drop_path: float = 0.0  # stochastic depth: the rate of the last layer; the first has 0
    layer_scale: float = 0.0  # initial gain of every residual branch; 0 is none
    pool: Pool = "class"
    registers: int = 0  # tokens beside the patches that no pool reads
    positions: Positions = "learned"
    position_std: float = 0.02  # initial; a larger one lets a small model learn positions sooner
    norm: Norm = "pre"
    activation: FeedForwardName = "gelu"  # "swiglu", here with biases, has a third matrix
    norm_eps: float = 1e-6
    qkv_bias: bool = True

    @property
    def grid(self) -> Grid:
        """Rows and columns of tokens."""
        raise NotImplementedError

    @property
    def sized_tables(self) -> Mapping[str, SizedTable]:
        """Position tables, absolute or relative, have the size of the grid."""
        extra = extra_names(POOLS[self.pool].names, self.registers)
        return grid_tables(self.grid, len(extra), antialiased=self.registers > 0)


def build_pool(config: ImageEncoderConfig) -> ClassToken | MeanPool:
    """Build what turns the tokens of an image into one vector."""
    heads, registers = config.heads, config.registers
    if config.pool == "map":
        own, eps = block_feedforward(config), config.norm_eps
        return AttentionPool(config.dim, heads, registers=registers, feedforward=own, eps=eps)
    return POOLS[config.pool](config.dim, heads, registers=registers)


def grid_positions(config: ImageEncoderConfig, extra: int) -> NoGridPositions:
    """Build the positions of a grid of tokens behind `extra` tokens."""
    part = POSITIONS[config.positions]
    return part(config.grid, extra, config.dim, std=config.position_std, heads=config.heads)


def block_feedforward(config: ImageEncoderConfig) -> FeedForward | GatedFeedForward:
    """Build the feed-forward part of a block."""
    return feedforward(
        config.activation, config.dim, config.ffn_dim, dropout=config.dropout, gate_bias=True
    )


def encoder_blocks(
    config: ImageEncoderConfig, attention: type[MultiHeadAttention] = MultiHeadAttention
) -> list[EncoderBlock]:
    """Build the blocks, from the first layer to the last."""
    return [
        EncoderBlock(
            attention(
                config.dim, config.heads, bias=config.qkv_bias, dropout=config.attention_dropout
            ),
            block_feedforward(config),
            partial(
                RESIDUALS[config.norm],
                config.dim,
                dropout=config.dropout,
                eps=config.norm_eps,
                layer_scale=config.layer_scale,
                drop_path=rate,
            ),
        )
        for rate in linear_decay(config.drop_path, config.layers)
    ]
