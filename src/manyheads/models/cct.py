"""The Compact Convolutional Transformer: Hassani et al. 2021, "Escaping the Big Data Paradigm".

A ViT for few and small images: a convolution stem gives the tokens, a weighted mean of all of them
the answer. The paper's ViT-Lite and CVT are a Vit on small patches with its `pool`: see presets.
"""

from dataclasses import dataclass

from torch import nn

from manyheads.errors import UsageError
from manyheads.models.components import final_norm
from manyheads.models.image_encoder import (
    ImageEncoderConfig,
    Pool,
    build_pool,
    encoder_blocks,
    grid_positions,
)
from manyheads.nn.blocks.stack import Encoder
from manyheads.nn.layers import initial_weights as initial
from manyheads.nn.layers.dropout import Dropout
from manyheads.nn.layers.head import Head
from manyheads.nn.recording.tracking import start_image
from manyheads.nn.shapes import ClassScores, Grid, Images, Tokens
from manyheads.nn.vision.stem import ConvStem


@dataclass(frozen=True, kw_only=True)
class CctConfig(ImageEncoderConfig):
    """Shape and parts of a CCT; the defaults are the paper's CCT-7/3x1 on CIFAR-10.

    The name is layers/kernel x convolutions. `ffn_dim` is twice `dim` in the larger ones, equal to
    it in CCT-2 and -4 (table 1 of the paper).
    """

    height: int = 32
    width: int = 32
    convolutions: int = 1  # each halves rows and columns
    kernel: int = 3
    stem: int = 64  # width of the convolutions before the last
    dim: int = 256
    layers: int = 7
    heads: int = 4
    ffn_dim: int = 512
    classes: int = 10
    pool: Pool = "sequence"
    position_std: float = 0.2
    norm_eps: float = 1e-5
    qkv_bias: bool = False

    def __post_init__(self) -> None:
        if self.convolutions < 1 or self.kernel % 2 == 0:
            raise UsageError(
                f"The stem has {self.convolutions} convolutions of {self.kernel} x {self.kernel}: "
                "it needs at least one, and a kernel of odd size."
            )

    @property
    def grid(self) -> Grid:
        """Rows and columns of tokens behind the stem: halved so often, rounded up."""
        share = 2**self.convolutions
        return -(-self.height // share), -(-self.width // share)

    def build(self) -> "Cct":
        """Build the model with fresh weights."""
        return Cct(self)


class Cct(nn.Module):
    """Images in, logits over classes out."""

    def __init__(self, config: CctConfig) -> None:
        super().__init__()
        self.config = config
        widths = [config.stem] * (config.convolutions - 1) + [config.dim]
        self.stem = ConvStem(config.channels, widths, kernel=config.kernel)
        self.pool = build_pool(config)
        self.positions = grid_positions(config, self.pool.extra)
        self.dropout = Dropout(config.dropout)
        closing = final_norm(config.norm, config.dim, config.norm_eps)
        self.encoder = Encoder(encoder_blocks(config), closing)
        self.head = Head(self.pool.outputs, config.classes)
        # The stem has drawn its own.
        initial.truncated(self)
        nn.init.zeros_(self.head.weight)  # all classes equally likely at first

    def forward(self, images: Images) -> ClassScores:
        """Score every class for every image."""
        return self.head(self.pool(self.features(images)))

    def features(self, images: Images) -> Tokens:
        """Return the final vector of every token (after the class token, if there is one)."""
        start_image(images)
        tokens = self.stem(images)
        grid = (tokens.shape[2], tokens.shape[3])
        x = self.pool.prepend(tokens.flatten(2).transpose(1, 2))
        x = self.dropout(self.positions(x, grid))
        return self.encoder(x, bias=self.positions.bias(grid))
