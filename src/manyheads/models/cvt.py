"""The Convolutional vision Transformer: Wu et al. 2021, "CvT".

Convolutions make the tokens of every stage and project queries, keys and values; so there are no
positions to learn, and an image may have any size.
"""

from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from manyheads.models.model_config import ImageConfig, check_stages
from manyheads.nn.attention.conv import ConvProjectedAttention
from manyheads.nn.blocks.block import GridBlock
from manyheads.nn.blocks.pool import ClassToken, MeanPool
from manyheads.nn.layers import initial_weights as initial
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.feedforward import FeedForward
from manyheads.nn.layers.grid import to_map
from manyheads.nn.layers.head import Head
from manyheads.nn.layers.residual import PreNorm
from manyheads.nn.layers.stochastic_depth import stage_decay
from manyheads.nn.recording.trace import LayerId
from manyheads.nn.recording.tracking import start_image
from manyheads.nn.shapes import ClassScores, Grid, Images, Tokens
from manyheads.nn.vision.patch import OverlappingPatches


@dataclass(frozen=True, kw_only=True)
class CvtConfig(ImageConfig):
    """Shape of a CvT; the defaults are CvT-13 (table 2). The last stage has a class token."""

    _width_key = "dims"

    dims: tuple[int, ...] = (64, 192, 384)
    layers: tuple[int, ...] = (1, 2, 10)
    heads: tuple[int, ...] = (1, 3, 6)
    kernels: tuple[int, ...] = (7, 3, 3)  # of the embedding of each stage
    strides: tuple[int, ...] = (4, 2, 2)
    paddings: tuple[int, ...] = (2, 1, 1)
    kernel: int = 3  # of the projections
    key_stride: int = 2  # keys and values are fewer by its square
    expansion: float = 4.0  # of the feed-forward layers
    dropout: float = 0.0
    attention_dropout: float = 0.0  # more than 0 leaves the fast path of the fused kernel
    drop_path: float = 0.0  # stochastic depth: the rate of the last layer; the first has 0
    norm_eps: float = 1e-5
    qkv_bias: bool = True

    def __post_init__(self) -> None:
        check_stages(self, ["dims", "layers", "heads", "kernels", "strides", "paddings"])

    def build(self) -> "Cvt":
        """Build the model with fresh weights."""
        return Cvt(self)


class CvtStage(nn.Module):
    """Fewer and wider tokens, then blocks over them."""

    def __init__(self, config: CvtConfig, stage: int, rates: list[float]) -> None:
        super().__init__()
        dim = config.dims[stage]
        self.embed = OverlappingPatches(
            config.dims[stage - 1] if stage else config.channels,
            dim,
            kernel=config.kernels[stage],
            stride=config.strides[stage],
            padding=config.paddings[stage],
            eps=config.norm_eps,
        )
        self.tokens = (ClassToken if stage == len(config.dims) - 1 else MeanPool)(dim)
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(
            GridBlock(
                ConvProjectedAttention(
                    dim,
                    config.heads[stage],
                    kernel=config.kernel,
                    stride=config.key_stride,
                    extra=self.tokens.extra,
                    bias=config.qkv_bias,
                    dropout=config.attention_dropout,
                ),
                FeedForward(dim, int(dim * config.expansion), nn.GELU(), dropout=config.dropout),
                partial(PreNorm, dim, dropout=config.dropout, eps=config.norm_eps, drop_path=rate),
            )
            for rate in rates
        )
        for layer, block in enumerate(self.blocks):
            block.attention.layer_id = LayerId(f"stage {stage + 1}", layer, "self")  # type: ignore[union-attr]

    def forward(self, x: Images) -> tuple[Tokens, Grid]:
        """Return the stage's tokens and their grid."""
        tokens, grid = self.embed(x)
        tokens = self.tokens.prepend(self.dropout(tokens))
        for block in self.blocks:
            tokens = block(tokens, grid)
        return tokens, grid


class Cvt(nn.Module):
    """Images in, logits over classes out."""

    def __init__(self, config: CvtConfig) -> None:
        super().__init__()
        self.config = config
        rates = stage_decay(config.drop_path, config.layers)
        self.stages = nn.ModuleList(CvtStage(config, n, each) for n, each in enumerate(rates))
        self.norm = nn.LayerNorm(config.dims[-1], eps=config.norm_eps)
        self.head = Head(config.dims[-1], config.classes)
        initial.truncated(self)
        nn.init.zeros_(self.head.weight)  # all classes equally likely at first

    def forward(self, images: Images) -> ClassScores:
        """Score every class for every image."""
        return self.head(self.features(images)[:, 0])

    def features(self, images: Images) -> Tokens:
        """Return the final vectors of the class token and of every token of the last stage."""
        start_image(images)
        x = images.contiguous(memory_format=torch.channels_last)
        *stages, last = self.stages
        for stage in stages:
            x = to_map(*stage(x))
        tokens, _ = last(x)
        return self.norm(tokens)
