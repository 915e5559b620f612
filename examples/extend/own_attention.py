"""An attention of one's own: scores that fall with distance, in a Vision Transformer.

    python examples/extend/own_attention.py
    manyheads train RECIPE model.preset=alibi-vit --plugin examples/extend/own_attention.py

Press et al. 2022, "Train Short, Test Long", section 3 (ALiBi): no positions are added to the
tokens. Each head takes slope * distance off its scores before the softmax, and each has a slope of
its own, so that some look near and some far. Here the distance is that of patches: rows + columns.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

import manyheads
from manyheads.models import ModelConfig
from manyheads.nn import (
    AttentionRecord,
    Encoder,
    EncoderBlock,
    FeedForward,
    Head,
    LinearPatches,
    MeanPool,
    MultiHeadAttention,
    PreNorm,
    start_image,
)


def distances(rows: int, columns: int) -> Tensor:
    """Count the steps between every two patches of a grid: (query, key)."""
    row = torch.arange(rows).repeat_interleave(columns)
    column = torch.arange(columns).repeat(rows)
    return (row[:, None] - row).abs() + (column[:, None] - column).abs()


class AlibiAttention(MultiHeadAttention):
    """The attention of the core, with a bias; what a recorder keeps has the bias in it."""

    bias: Tensor

    def __init__(self, dim: int, heads: int, grid: tuple[int, int]) -> None:
        super().__init__(dim, heads)
        slopes = 2.0 ** (-8 / heads * torch.arange(1, heads + 1))  # section 3 of the paper
        bias = -slopes[:, None, None] * distances(*grid)
        self.register_buffer("bias", bias[None], persistent=False)  # (1, head, query, key)

    def forward(
        self, x: Tensor, mask: Tensor | None = None, bias: Tensor | None = None, *rest: Any
    ) -> Tensor:
        """Add the bias to one that may be there already."""
        return super().forward(x, mask, self.bias if bias is None else bias + self.bias, *rest)


@dataclass(frozen=True, kw_only=True)
class AlibiVitConfig(ModelConfig):
    """Shape of the model; a recipe's [model] table may change every field."""

    tasks: ClassVar[tuple[str, ...]] = ("classify",)

    height: int = 8
    width: int = 8
    channels: int = 1
    patch: int = 2
    dim: int = 32
    layers: int = 2
    heads: int = 4
    classes: int = 10

    def build(self) -> "AlibiVit":
        """Build the model with fresh weights."""
        return AlibiVit(self)


class AlibiVit(nn.Module):
    """A ViT without positions: patches, blocks with the attention above, the mean, a head."""

    def __init__(self, config: AlibiVitConfig) -> None:
        super().__init__()
        dim, grid = config.dim, (config.height // config.patch, config.width // config.patch)
        self.patches = LinearPatches(config.channels, config.patch, dim)
        blocks = [
            EncoderBlock(
                AlibiAttention(dim, config.heads, grid),
                FeedForward(dim, 4 * dim, nn.GELU()),
                partial(PreNorm, dim),
            )
            for _ in range(config.layers)
        ]
        self.encoder = Encoder(blocks, nn.LayerNorm(dim))
        self.pool = MeanPool(dim)
        self.head = Head(dim, config.classes)

    def forward(self, images: Tensor) -> Tensor:
        """Score the classes: (image, channel, height, width) -> (image, class)."""
        start_image(images)  # tells an open recorder where on the image the tokens will stand
        return self.head(self.pool(self.encoder(self.patches(images))))


manyheads.register_preset("alibi-vit", AlibiVitConfig())


def main() -> None:
    """Print how far each head looks, in patches, before any training."""
    torch.manual_seed(1)
    config = AlibiVitConfig()
    model = manyheads.build(config).eval()
    with torch.inference_mode(), manyheads.record() as trace:
        model(torch.randn(16, config.channels, config.height, config.width))
    for record in trace:
        weights = cast(AttentionRecord, record).weights()  # (image, head, query, key)
        far = (weights * distances(4, 4)).sum(dim=-1).mean(dim=(0, 2))
        print(f"{record.layer_id}: {', '.join(f'{each:.2f}' for each in far.tolist())} patches")


if __name__ == "__main__":
    main()
