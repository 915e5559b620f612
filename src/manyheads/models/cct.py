"""The Compact Convolutional Transformer: Hassani et al. 2021, "Escaping the Big Data Paradigm".

A ViT for few and small images: a convolution stem gives the tokens, a weighted mean of all of them
the answer. The paper's ViT-Lite and CVT are a Vit on small patches with its `pool`: see presets.
"""

from dataclasses import dataclass
from functools import partial

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.models.parts import RESIDUALS, Activation, Norm, feedforward, final_norm
from manyheads.models.vit import POOLS, POSITIONS, Pool, Positions
from manyheads.nn import initial
from manyheads.nn.attention import MultiHeadAttention
from manyheads.nn.block import EncoderBlock
from manyheads.nn.depth import rising
from manyheads.nn.dropout import Dropout
from manyheads.nn.head import Head
from manyheads.nn.places import begin
from manyheads.nn.stack import Encoder
from manyheads.nn.stem import ConvStem


@dataclass(frozen=True, kw_only=True)
class CctConfig:
    """Shape and parts of a CCT; the defaults are the paper's CCT-7/3x1 on CIFAR-10.

    The name is layers/kernel x convolutions. `hidden` is twice `dim` in the larger ones, equal to
    it in CCT-2 and -4 (table 1 of the paper).
    """

    height: int = 32
    width: int = 32
    channels: int = 3
    convolutions: int = 1  # each halves rows and columns
    kernel: int = 3
    stem: int = 64  # width of the convolutions before the last
    dim: int = 256
    layers: int = 7
    heads: int = 4
    hidden: int = 512
    classes: int = 10
    dropout: float = 0.0
    attention_dropout: float = 0.0  # more than 0 leaves the fast path of the fused kernel
    drop_path: float = 0.0  # stochastic depth: the rate of the last layer; the first has 0
    layer_scale: float = 0.0  # gain of every branch at first; 0 is none
    pool: Pool = "sequence"
    positions: Positions = "learned"
    position_std: float = 0.2
    norm: Norm = "pre"
    activation: Activation = "gelu"
    norm_eps: float = 1e-5
    qkv_bias: bool = False

    def __post_init__(self) -> None:
        """Refuse a stem that has no middle."""
        if self.convolutions < 1 or self.kernel % 2 == 0:
            raise UsageError(
                f"The stem has {self.convolutions} convolutions of {self.kernel} x {self.kernel}: "
                "it needs at least one, and a kernel of odd size."
            )

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of tokens behind the stem: halved so often, rounded up."""
        share = 2**self.convolutions
        return -(-self.height // share), -(-self.width // share)


class Cct(nn.Module):
    """Images in, logits over classes out."""

    def __init__(self, config: CctConfig) -> None:
        super().__init__()
        self.config = config
        widths = [config.stem] * (config.convolutions - 1) + [config.dim]
        self.stem = ConvStem(config.channels, widths, kernel=config.kernel)
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
                MultiHeadAttention(
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
        self.encoder = Encoder(blocks, final_norm(config.norm, config.dim, config.norm_eps))
        self.head = Head(config.dim, config.classes)
        # The stem has drawn its own.
        initial.truncated(self)
        nn.init.zeros_(self.head.weight)  # all classes equally likely at first

    def forward(
        self, images: Float[Tensor, "batch channel height width"]
    ) -> Float[Tensor, "batch classes"]:
        """Score every class for every image."""
        return self.head(self.pool(self.features(images)))

    def features(
        self, images: Float[Tensor, "batch channel height width"]
    ) -> Float[Tensor, "batch token dim"]:
        """Give every token (behind the class token, if there is one) its final vector."""
        begin(images)
        tokens = self.stem(images)
        grid = (tokens.shape[2], tokens.shape[3])
        x = self.pool.prepend(tokens.flatten(2).transpose(1, 2))
        x = self.dropout(self.positions(x, grid))
        return self.encoder(x, bias=self.positions.bias(grid))
