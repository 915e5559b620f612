"""Relative positions on a grid: a learned bias for each distance between query and key."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.layers.positions import NoGridPositions, resize_grid
from manyheads.nn.shapes import Grid, Tokens


class RelativeBias(nn.Module):
    """B in softmax(QK^T / sqrt(d) + B)V, read from a table by distance (Liu et al. 2021, eq. 4).

    A grid of h x w has (2h - 1)(2w - 1) distances: the table has a row for each, from the lowest to
    the highest, and a column for each head.
    """

    index: Tensor

    def __init__(self, grid: Grid, heads: int) -> None:
        super().__init__()
        self.grid = grid
        rows, columns = spans(grid)
        self.table = nn.Parameter(torch.empty(rows * columns, heads))
        nn.init.trunc_normal_(self.table, std=0.02)
        self.register_buffer("index", distances(grid), persistent=False)

    def forward(self, grid: Grid) -> Float[Tensor, "1 head query key"]:
        """Give the bias for a grid; for another than was learned, the table is interpolated."""
        same = grid == self.grid
        table: Tensor = self.table if same else resize_bias(self.table, self.grid, grid)
        index = (self.index if same else distances(grid)).to(table.device)
        return table[index].permute(2, 0, 1).unsqueeze(0)  # query key head -> 1 head query key


class RelativeAttention(nn.Module):
    """Self-attention over a whole grid plus a relative bias (Dai et al. 2021, equation 3).

    At another image size the bias is interpolated.
    """

    def __init__(self, attention: MultiHeadAttention, grid: Grid) -> None:
        super().__init__()
        self.attention = attention
        self.bias = RelativeBias(grid, attention.heads)

    def forward(self, x: Tokens, grid: Grid) -> Float[Tensor, "batch token output"]:
        """Mix all tokens."""
        return self.attention(x, bias=self.bias(grid))


class RelativeGridPositions(NoGridPositions):
    """Relative positions of patches as the bias of every layer (ViT, appendix D.4).

    The layers share one table, as in T5 (Raffel et al. 2020, section 2.1). Extra tokens have no
    position: to and from them the bias is 0.
    """

    def __init__(self, grid: Grid, extra: int, dim: int, *, std: float, heads: int = 1) -> None:
        super().__init__(grid, extra, dim, std=std)
        self.distances = RelativeBias(grid, heads)

    def bias(self, grid: Grid) -> Float[Tensor, "1 head token token"]:
        """Give the bias for a grid, with rows and columns of zeros for extra tokens in front."""
        return F.pad(self.distances(grid), (self.extra, 0, self.extra, 0))


def spans(grid: Grid) -> Grid:
    """Count the distances along rows and along columns."""
    return 2 * grid[0] - 1, 2 * grid[1] - 1


def distances(grid: Grid) -> Int[Tensor, "query key"]:
    """Number the distance from each key to each query: a row of the table."""
    # A formula, not a weight: there also when a model is built on the meta device to be loaded.
    row, column = (torch.arange(length, device="cpu") for length in grid)
    row, column = row.repeat_interleave(grid[1]), column.repeat(grid[0])
    down = row[:, None] - row + grid[0] - 1
    right = column[:, None] - column + grid[1] - 1
    return down * spans(grid)[1] + right


def resize_bias(
    table: Float[Tensor, "old head"], old: Grid, new: Grid
) -> Float[Tensor, "new head"]:
    """Fit a table learned for one grid to another, by 2-D interpolation over the distances."""
    return resize_grid(table, spans(old), spans(new), extra=0)


def stretch_bias(
    table: Float[Tensor, "old head"], old: Grid, new: Grid
) -> Float[Tensor, "new head"]:
    """Fit a table as timm and BEiT do: small distances keep their bias.

    The old distances are spread in steps that grow by a constant factor up to the largest new one;
    between them the bias is linear, and beyond them it is constant.
    """
    if old == new:
        return table
    grid = table.float().unflatten(0, spans(old))
    for axis in range(2):
        grid = _stretch(grid.transpose(0, axis), new[axis]).transpose(0, axis)
    return grid.flatten(0, 1).to(table.dtype)


def _stretch(x: Float[Tensor, "old other head"], length: int) -> Float[Tensor, "new other head"]:
    """Stretch the distances along an axis to those of so many rows or columns."""
    reach = len(x) // 2  # the largest distance; an axis of one place has none
    if not reach:
        return x.expand(2 * length - 1, -1, -1)
    powers = torch.arange(reach, dtype=torch.float64)
    low, high = 1.01, 1.5  # timm's bounds of the factor, and its precision
    while high - low > 1e-6:
        factor = (low + high) / 2
        low, high = (low, factor) if (factor**powers).sum() > length - 1 else (factor, high)
    steps = (factor**powers).cumsum(0)
    known = torch.cat((-steps.flip(0), torch.zeros(1), steps)).to(x)
    wanted = torch.arange(1.0 - length, length).to(x)
    right = torch.searchsorted(known, wanted).clamp(1, len(known) - 1)
    share = (wanted - known[right - 1]) / (known[right] - known[right - 1])
    return torch.lerp(x[right - 1], x[right], share.clamp(0, 1)[:, None, None])
