"""Positions by turning queries and keys instead of adding to vectors: RoPE (Su et al. 2021).

The product of a query turned by m steps and a key turned by n depends on n - m alone: relative
positions, from absolute turns. For sinusoids a shift is a rotation too (atlas T8a); here the
rotation is applied where it counts, and in every layer.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.nn.layers.positions import open_sum, sinusoids, table_rows

Rotate = Callable[[Tensor, int], Tensor]


def unrotated(
    x: Float[Tensor, "batch head token size"],
    first: int,  # noqa: ARG001
) -> Float[Tensor, "batch head token size"]:
    """Return x: positions, if any, are in the token vectors already."""
    return x


class Rotary(nn.Module):
    """Turn each pair of dimensions (2i, 2i+1) at position m by m / 10000^(2i/size) (equation 34).

    A part for `MultiHeadAttention(rotate=...)`. Values are not turned.
    """

    table: Tensor

    def __init__(self, length: int, size: int) -> None:
        super().__init__()
        if size % 2:
            raise UsageError(
                f"Rotary positions turn pairs of dimensions, but a head is {size} wide: choose a "
                "dim and a number of heads that give heads of even width."
            )
        # Sines and cosines of the very angles that sinusoidal positions have.
        self.register_buffer("table", sinusoids(length, size), persistent=False)

    def forward(
        self, x: Float[Tensor, "batch head token size"], first: int = 0
    ) -> Float[Tensor, "batch head token size"]:
        """Turn the tokens of x to the positions first, first + 1, ...; any length."""
        last = first + x.shape[2]
        table = self.table
        if not open_sum(first) and last > len(table):
            table = sinusoids(last, x.shape[3]).to(x.device)
        sin, cos = table_rows(table, first, last).unflatten(1, (-1, 2)).unbind(dim=-1)
        left, right = x.float().unflatten(-1, (-1, 2)).unbind(dim=-1)
        turned = torch.stack((left * cos - right * sin, left * sin + right * cos), dim=-1)
        return turned.flatten(-2).to(x.dtype)
