"""Attention with convolutional projections of queries, keys and values (Wu et al. 2021, 3.2)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.layers.grid import to_map, to_tokens
from manyheads.nn.recording.attention_record import AttentionContext
from manyheads.nn.recording.token_grid import conv_output_grid
from manyheads.nn.recording.tracking import current_grid
from manyheads.nn.shapes import Grid, Tokens


class DepthwiseProjection(nn.Module):
    """A convolution of each channel by itself, then batch normalisation.

    Extra tokens in front have no neighbours and are not convolved.
    """

    def __init__(self, dim: int, *, kernel: int, stride: int, extra: int) -> None:
        super().__init__()
        self.extra = extra
        self.convolve = nn.Conv2d(
            dim, dim, kernel, stride=stride, padding=kernel // 2, groups=dim, bias=False
        )
        self.norm = nn.BatchNorm2d(dim)

    def forward(self, x: Tokens, grid: Grid) -> Float[Tensor, "batch fewer dim"]:
        """Convolve the grid; a stride gives fewer tokens."""
        seen, _ = to_tokens(self.norm(self.convolve(to_map(x[:, self.extra :], grid))))
        return torch.cat((x[:, : self.extra], seen), dim=1)


class ConvProjectedAttention(MultiHeadAttention):
    """The one attention behind convolutional projections; keys and values may be fewer (3.2.2)."""

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        kernel: int = 3,
        stride: int = 2,
        extra: int = 0,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(dim, heads, bias=bias, dropout=dropout)
        self.query = DepthwiseProjection(dim, kernel=kernel, stride=1, extra=extra)
        self.key = DepthwiseProjection(dim, kernel=kernel, stride=stride, extra=extra)
        self.value = DepthwiseProjection(dim, kernel=kernel, stride=stride, extra=extra)

    def forward(  # type: ignore[override]
        self, x: Tokens, grid: Grid
    ) -> Tokens:
        """Self-attention over a grid."""
        dim = self.out.in_features
        q, k, v = (
            self._split(self.qkv.forward_slice(project(x, grid), part * dim, (part + 1) * dim))
            for part, project in enumerate((self.query, self.key, self.value))
        )
        queries = current_grid()
        keys = None if queries is None else conv_output_grid(queries, self.key.convolve)
        return self._attend(q, k, v, None, None, AttentionContext(self.layer_id, queries, keys))
