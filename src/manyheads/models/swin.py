"""The Swin Transformer: Liu et al. 2021, "Hierarchical Vision Transformer using Shifted Windows".

Attention within windows costs as much as there are pixels, not their square; every second layer
shifts the windows so that neighbours meet, and between stages four tokens become one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.model_config import ImageConfig, check_stages
from manyheads.models.sized_tables import SizedTable, stage_tables
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.window import Edges, WindowedAttention
from manyheads.nn.blocks.block import GridBlock
from manyheads.nn.layers import initial_weights as initial
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.feedforward import FeedForward
from manyheads.nn.layers.head import Head
from manyheads.nn.layers.residual import PreNorm
from manyheads.nn.layers.stochastic_depth import stage_decay
from manyheads.nn.recording.trace import LayerId
from manyheads.nn.recording.tracking import start_image
from manyheads.nn.shapes import ClassScores, Grid, Images, Tokens
from manyheads.nn.vision.merge import NoMerging, PatchMerging
from manyheads.nn.vision.patch import ConvPatches, pad_to_patches

EdgesName = Literal["masked", "timm", "transformers", "torchvision"]

# Padding is hidden unless weights come from a library that shows it.
EDGES: dict[EdgesName, Edges] = {
    "masked": Edges(),
    "timm": Edges(padding_seen=True, shift_first=True),
    "transformers": Edges(padding_seen=True, shift_together=True, shrink=False),
    "torchvision": Edges(padding_seen=True, shrink=False),
}


@dataclass(frozen=True, kw_only=True)
class SwinConfig(ImageConfig):
    """Shape and parts of a Swin Transformer; the defaults are Swin-T (section 3.3)."""

    _width_key = "dims"

    patch: int = 4
    dim: int = 96  # doubled from stage to stage
    layers: tuple[int, ...] = (2, 2, 6, 2)
    heads: tuple[int, ...] = (3, 6, 12, 24)
    window: tuple[int, int] = (7, 7)
    expansion: float = 4.0  # of the feed-forward layers
    dropout: float = 0.0
    attention_dropout: float = 0.0  # more than 0 leaves the fast path of the fused kernel
    drop_path: float = 0.0  # stochastic depth: the rate of the last layer; the first has 0
    norm_eps: float = 1e-5
    qkv_bias: bool = True
    edges: EdgesName = "masked"

    def __post_init__(self) -> None:
        check_stages(self, ["layers", "heads"])
        if min(self.window) < 1:
            raise UsageError(f"The window is {self.window}: both sides must be at least 1.")

    @property
    def dims(self) -> list[int]:
        """The width of each stage."""
        return [self.dim * 2**stage for stage in range(len(self.layers))]

    @property
    def grids(self) -> list[Grid]:
        """Rows and columns of tokens in each stage: each stage halves them, rounded up."""
        steps = [self.patch * 2**stage for stage in range(len(self.layers))]  # pixels a token
        return [(-(-self.height // step), -(-self.width // step)) for step in steps]

    @property
    def windows(self) -> list[Grid]:
        """The window of each stage; the learned tables have its size."""
        return [EDGES[self.edges].size(self.window, grid) for grid in self.grids]

    @property
    def sized_tables(self) -> Mapping[str, SizedTable]:
        """Bias tables depend on the window, which shrinks with the grid."""
        return stage_tables("stages.{}.blocks.*.bias.table", self.windows)

    def build(self) -> "Swin":
        """Build the model with fresh weights."""
        return Swin(self)


class SwinStage(nn.Module):
    """Fewer and wider tokens, then blocks over them."""

    def __init__(self, config: SwinConfig, stage: int, rates: list[float]) -> None:
        super().__init__()
        dim, eps = config.dims[stage], config.norm_eps
        self.merge = PatchMerging(config.dims[stage - 1], eps=eps) if stage else NoMerging()
        self.blocks = nn.ModuleList()
        window, edges = config.windows[stage], EDGES[config.edges]
        for layer, rate in enumerate(rates):
            shifted = layer % 2 == 1
            attention = MultiHeadAttention(
                dim, config.heads[stage], bias=config.qkv_bias, dropout=config.attention_dropout
            )
            kind = "shifted window" if shifted else "window"
            attention.layer_id = LayerId(f"stage {stage + 1}", layer, kind)
            block = GridBlock(
                WindowedAttention(attention, window, shifted=shifted, edges=edges),
                FeedForward(dim, int(dim * config.expansion), nn.GELU(), dropout=config.dropout),
                partial(PreNorm, dim, dropout=config.dropout, eps=eps, drop_path=rate),
            )
            self.blocks.append(block)

    def forward(self, x: Tokens, grid: Grid) -> tuple[Float[Tensor, "batch fewer wider"], Grid]:
        """Return the stage's tokens and their grid."""
        x, grid = self.merge(x, grid)
        for block in self.blocks:
            x = block(x, grid)
        return x, grid


class Swin(nn.Module):
    """Images in, logits over classes out."""

    def __init__(self, config: SwinConfig) -> None:
        super().__init__()
        self.config = config
        self.patches = ConvPatches(config.channels, config.patch, config.dim)
        self.norm_patches = nn.LayerNorm(config.dim, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)
        rates = stage_decay(config.drop_path, config.layers)
        self.stages = nn.ModuleList(SwinStage(config, n, each) for n, each in enumerate(rates))
        self.norm = nn.LayerNorm(config.dims[-1], eps=config.norm_eps)
        self.head = Head(config.dims[-1], config.classes)
        initial.truncated(self)
        nn.init.zeros_(self.head.weight)  # all classes equally likely at first

    def forward(self, images: Images) -> ClassScores:
        """Score every class for every image."""
        return self.head(self.features(images).mean(dim=1))

    def features(self, images: Images) -> Tokens:
        """Return the final vectors of the last stage's tokens, of images padded to patches."""
        start_image(images)
        patch = self.config.patch
        images = pad_to_patches(images, patch)
        grid = (images.shape[2] // patch, images.shape[3] // patch)
        x = self.dropout(self.norm_patches(self.patches(images)))
        for stage in self.stages:
            x, grid = stage(x, grid)
        return self.norm(x)
