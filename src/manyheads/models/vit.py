"""The Vision Transformer: Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words"."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.parts import RESIDUALS, Activation, Norm, feedforward, final_norm
from manyheads.nn.attention import MultiHeadAttention
from manyheads.nn.block import EncoderBlock
from manyheads.nn.depth import rising
from manyheads.nn.dropout import Dropout
from manyheads.nn.head import Head
from manyheads.nn.linear import Linear
from manyheads.nn.linear_attention import LinearAttention
from manyheads.nn.patch import ConvPatches, LinearPatches
from manyheads.nn.places import begin
from manyheads.nn.pool import (
    AttentionPool,
    ClassToken,
    MeanPool,
    PatchMeanPool,
    SequencePool,
    TwoTokens,
)
from manyheads.nn.positions import GridPositions, NoGridPositions, SinusoidalGridPositions
from manyheads.nn.relative import RelativeGridPositions
from manyheads.nn.stack import Encoder

Pool = Literal["class", "mean", "patch-mean", "sequence", "attention", "distilled"]
PoolNorm = Literal["before", "after"]
Patches = Literal["linear", "conv"]
Positions = Literal["learned", "sinusoidal-2d", "relative", "none"]
Attention = Literal["softmax", "linear"]

POOLS: dict[Pool, type[ClassToken] | type[MeanPool]] = {
    "class": ClassToken,
    "mean": MeanPool,
    "sequence": SequencePool,
    "attention": AttentionPool,
    "distilled": TwoTokens,
    "patch-mean": PatchMeanPool,
}
PATCHES: dict[Patches, type[LinearPatches] | type[ConvPatches]] = {
    "linear": LinearPatches,
    "conv": ConvPatches,
}
POSITIONS: dict[Positions, type[NoGridPositions]] = {
    "learned": GridPositions,
    "sinusoidal-2d": SinusoidalGridPositions,
    "relative": RelativeGridPositions,
    "none": NoGridPositions,
}
ATTENTIONS: dict[Attention, type[MultiHeadAttention]] = {
    "softmax": MultiHeadAttention,
    "linear": LinearAttention,
}


@dataclass(frozen=True, kw_only=True)
class VitConfig:
    """Shape and parts of a ViT; the defaults are the paper's ViT-B/16 (table 1) at 224 pixels.

    `norm = "post", activation = "relu"` gives the variant of introductory slides (V5).
    """

    height: int = 224
    width: int = 224
    channels: int = 3
    patch: int = 16
    dim: int = 768
    layers: int = 12
    heads: int = 12
    hidden: int = 3072
    classes: int = 1000
    dropout: float = 0.0
    attention_dropout: float = 0.0  # more than 0 leaves the fast path of the fused kernel
    pool: Pool = "class"
    # Where a stack of pre-norm blocks is closed: over every token, or over the pooled vector only.
    pool_norm: PoolNorm = "before"
    representation: int | None = None  # width of a tanh layer before the head (section 3.1)
    patches: Patches = "conv"
    positions: Positions = "learned"
    position_std: float = 0.02  # at first; more lets a small model see sooner where patches are
    norm: Norm = "pre"
    activation: Activation = "gelu"
    norm_eps: float = 1e-6
    attention: Attention = "softmax"
    qkv_bias: bool = True
    layer_scale: float = 0.0  # gain of every branch at first; 0 is none
    drop_path: float = 0.0  # stochastic depth: the rate of the last layer; the first has 0

    def __post_init__(self) -> None:
        """Refuse an image that cannot be cut into whole patches, and what attention cannot do."""
        self.check_attention()
        if self.patch < 1:
            raise UsageError(f"The patch size is {self.patch}: it must be at least 1.")
        if self.height % self.patch or self.width % self.patch:
            raise UsageError(
                f"Images of {self.height} x {self.width} pixels cannot be cut into patches of "
                f"{self.patch} x {self.patch}: choose sizes that are multiples of the patch."
            )

    def check_attention(self) -> None:
        """Refuse dropout and positions that need the map which linear attention does not form."""
        if self.attention == "linear" and self.attention_dropout:
            raise UsageError(
                f"attention_dropout is {self.attention_dropout}, but linear attention forms no map "
                "of which values could be dropped: leave it 0."
            )
        if self.attention == "linear" and self.positions == "relative":
            raise UsageError(
                "Relative positions are added to the scores of attention, and linear attention "
                'forms none: choose positions = "learned" or "sinusoidal-2d".'
            )

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.height // self.patch, self.width // self.patch


class Vit(nn.Module):
    """Images in, logits over classes out."""

    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        self.config = config
        self.patches = self.embedding(config)
        self.pool = POOLS[config.pool](config.dim, config.heads)
        self.positions = POSITIONS[config.positions](
            config.grid,
            self.pool.extra,
            config.dim,
            std=config.position_std,
            heads=config.heads,
        )
        self.dropout = Dropout(config.dropout)
        blocks = [
            EncoderBlock(
                ATTENTIONS[config.attention](
                    config.dim,
                    config.heads,
                    bias=config.qkv_bias,
                    dropout=config.attention_dropout,
                ),
                feedforward(config.activation, config.dim, config.hidden, dropout=config.dropout),
                partial(
                    RESIDUALS[config.norm],
                    config.dim,
                    dropout=config.dropout,
                    eps=config.norm_eps,
                    layer_scale=config.layer_scale,
                    drop_path=rate,
                ),
            )
            for rate in rising(config.drop_path, config.layers)
        ]
        closing = final_norm(config.norm, config.dim, config.norm_eps)
        before = config.pool_norm == "before"
        self.encoder = Encoder(blocks, closing if before else nn.Identity())
        self.pool_norm = nn.Identity() if before else closing
        width = config.representation or config.dim
        self.representation = (
            nn.Sequential(Linear(config.dim, width), nn.Tanh())
            if config.representation
            else nn.Identity()
        )
        self.head = Head(width, config.classes)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw initial weights: truncated normal (0.02), Xavier inside the blocks, a zero head."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
                if name.startswith("encoder"):
                    nn.init.xavier_uniform_(module.weight)
                else:
                    nn.init.trunc_normal_(module.weight, std=module.in_features**-0.5)
        nn.init.zeros_(self.head.weight)  # all classes equally likely at first

    def forward(
        self, images: Float[Tensor, "batch channel height width"]
    ) -> Float[Tensor, "batch classes"]:
        """Score every class for every image."""
        pooled = self.pool_norm(self.pool(self.features(images)))
        return self.head(self.representation(pooled))

    def features(
        self, images: Float[Tensor, "batch channel height width"]
    ) -> Float[Tensor, "batch token dim"]:
        """Give every patch (behind the class token, if there is one) its final vector."""
        begin(images)
        grid = self.grid(images.shape[2], images.shape[3])
        x = self.pool.prepend(self.patches(images))
        return self.encode(x, grid)

    def encode(
        self, x: Float[Tensor, "batch token dim"], grid: tuple[int, int]
    ) -> Float[Tensor, "batch token dim"]:
        """Say where tokens stand, then let them see each other."""
        x = self.dropout(self.positions(x, grid))
        return self.encoder(x, bias=self.positions.bias(grid))

    def embedding(self, config: VitConfig) -> nn.Module:
        """Build what makes tokens of images."""
        return PATCHES[config.patches](config.channels, config.patch, config.dim)

    def grid(self, height: int, width: int) -> tuple[int, int]:
        """Say how many rows and columns of tokens an image has."""
        return height // self.config.patch, width // self.config.patch
