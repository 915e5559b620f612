"""The Vision Transformer: Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words"."""

import re
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from torch import nn

from manyheads.errors import UsageError
from manyheads.models.components import final_norm
from manyheads.models.image_encoder import (
    ImageEncoderConfig,
    build_pool,
    encoder_blocks,
    grid_positions,
)
from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.linear_attention import LinearAttention
from manyheads.nn.blocks.stack import Encoder
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.head import Head
from manyheads.nn.layers.linear import Linear
from manyheads.nn.recording.tracking import start_image
from manyheads.nn.shapes import ClassScores, Grid, Images, Tokens
from manyheads.nn.vision.patch import ConvPatches, LinearPatches

PATCH = re.compile("[0-9]{1,4}")  # a size behind the slash: "vit-b/16"

PoolNorm = Literal["before", "after", "none"]
Patches = Literal["linear", "conv"]
Attention = Literal["softmax", "linear"]

PATCHES: dict[Patches, type[LinearPatches]] = {"linear": LinearPatches, "conv": ConvPatches}
ATTENTIONS: dict[Attention, type[MultiHeadAttention]] = {
    "softmax": MultiHeadAttention,
    "linear": LinearAttention,
}


@dataclass(frozen=True, kw_only=True)
class VitConfig(ImageEncoderConfig):
    """Shape and parts of a ViT; the defaults are the paper's ViT-B/16 (table 1) at 224 pixels.

    `norm = "post", activation = "relu"` gives the variant of introductory slides (V5). With
    `classes = 0` there is no head: an encoder whose pooled vector is the output.
    """

    tasks: ClassVar[tuple[str, ...]] = ("classify", "reconstruct", "embed")
    behind_features: ClassVar[tuple[str, ...]] = ("pool_norm", "representation", "head")

    patch: int = 16
    patches: Patches = "conv"
    attention: Attention = "softmax"
    patch_bias: bool = True
    embedding_norm: bool = False  # LayerNorm in front of the stack, as in CLIP
    # Where a stack of pre-norm blocks is closed: over every token, over the pooled vector only, or
    # nowhere.
    pool_norm: PoolNorm = "before"
    representation: int | None = None  # width of a tanh layer before the head (section 3.1)

    def __post_init__(self) -> None:
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
    def grid(self) -> Grid:
        """Rows and columns of patches."""
        return self.height // self.patch, self.width // self.patch

    def variant(self, suffix: str) -> "VitConfig | None":
        """Return the same ViT with another patch size: "vit-b/32"."""
        return replace(self, patch=int(suffix)) if PATCH.fullmatch(suffix) else None

    def build(self) -> "Vit":
        """Build the model with fresh weights."""
        return Vit(self)


class Vit(nn.Module):
    """Images in, logits over classes out."""

    def __init__(self, config: VitConfig) -> None:
        super().__init__()
        self.config = config
        self.patches = self.embedding()
        self.pool = build_pool(config)
        self.positions = grid_positions(config, self.pool.extra)
        self.dropout = Dropout(config.dropout)
        self.embedding_norm = (
            nn.LayerNorm(config.dim, eps=config.norm_eps)
            if config.embedding_norm
            else nn.Identity()
        )
        blocks = encoder_blocks(config, ATTENTIONS[config.attention])
        self.encoder = Encoder(blocks, self.closing("before", config.dim))
        self.pool_norm = self.closing("after", self.pool.outputs)
        width = config.representation or self.pool.outputs
        self.representation = (
            nn.Sequential(Linear(self.pool.outputs, width), nn.Tanh())
            if config.representation
            else nn.Identity()
        )
        self.head: Head = (
            Head(width, config.classes) if config.classes else nn.Identity()  # type: ignore[assignment]
        )
        self.reset_parameters()

    def closing(self, place: PoolNorm, dim: int) -> nn.Module:
        """Build the norm that closes the stack, if this is its place."""
        if self.config.pool_norm != place:
            return nn.Identity()
        return final_norm(self.config.norm, dim, self.config.norm_eps)

    def reset_parameters(self) -> None:
        """Draw initial weights: LeCun (variance 1/inputs), Xavier in the blocks, a zero head."""
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
                if name.startswith("encoder"):
                    nn.init.xavier_uniform_(module.weight)
                else:
                    nn.init.trunc_normal_(module.weight, std=module.in_features**-0.5)
        if isinstance(self.head, Head):
            nn.init.zeros_(self.head.weight)  # all classes equally likely at first

    def forward(self, images: Images) -> ClassScores:
        """Score every class for every image; without a head, return its pooled vector."""
        pooled = self.pool_norm(self.pool(self.features(images)))
        return self.head(self.representation(pooled))

    def features(self, images: Images) -> Tokens:
        """Return the final vector of every token; a class token is the first."""
        start_image(images)
        grid = self.grid(images.shape[2], images.shape[3])
        return self.encode(self.pool.prepend(self.patches(images)), grid)

    def encode(self, x: Tokens, grid: Grid) -> Tokens:
        """Add positions, then run the encoder."""
        x = self.embedding_norm(self.dropout(self.positions(x, grid)))
        return self.encoder(x, bias=self.positions.bias(grid))

    def embedding(self) -> nn.Module:
        """Build the module that turns images into tokens."""
        config, part = self.config, PATCHES[self.config.patches]
        return part(config.channels, config.patch, config.dim, bias=config.patch_bias)

    def grid(self, height: int, width: int) -> Grid:
        """Count the rows and columns of tokens of an image."""
        return height // self.config.patch, width // self.config.patch
