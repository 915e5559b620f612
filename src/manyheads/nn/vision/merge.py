"""Patch merging: four neighbours become one token, twice as wide (Liu et al. 2021, section 3.1)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.layers.linear import Linear
from manyheads.nn.recording.tracking import track_conv
from manyheads.nn.shapes import Grid, Tokens, check_axes


class PatchMerging(nn.Module):
    """Lay 2 x 2 tokens beside each other, normalise, and project from 4d to 2d.

    A row or column that is left alone gets zeros for neighbours.
    """

    def __init__(self, dim: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * dim, eps=eps)
        self.project = Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x: Tokens, grid: Grid) -> tuple[Float[Tensor, "batch merged wider"], Grid]:
        """Halve rows and columns, rounded up."""
        check_axes(x, "batch token dim")
        rows, columns = grid
        x = F.pad(x.unflatten(1, grid), (0, 0, 0, columns % 2, 0, rows % 2))
        # In the order of the paper's code: down first, then to the right.
        corners = [x[:, down::2, right::2] for right in range(2) for down in range(2)]
        merged = torch.cat(corners, dim=-1)
        halved = (merged.shape[1], merged.shape[2])
        track_conv(2, 2, grid=halved)
        return self.project(self.norm(merged.flatten(1, 2))), halved


class NoMerging(nn.Module):
    """No merging, in front of the first stage."""

    def forward(self, x: Tokens, grid: Grid) -> tuple[Tokens, Grid]:
        """Return x and its grid."""
        return x, grid
