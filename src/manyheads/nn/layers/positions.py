"""Where a token stands: attention itself sees a set, not a sequence (Vaswani et al. 2017, 3.5)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from manyheads.errors import UsageError
from manyheads.nn.shapes import Grid, Tokens, check_axes


def sinusoids(length: int, dim: int) -> Float[Tensor, "{length} {dim}"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/dim)) and PE(pos, 2i+1) = cos of the same.

    The wavelength grows with i, from 2 pi to 10000 * 2 pi: low dimensions turn fast.
    """
    # A formula, not a weight: there also when a model is built on the meta device to be loaded.
    position = torch.arange(length, dtype=torch.float64, device="cpu")[:, None]
    wavelength = 10000 ** (torch.arange(0, dim, 2, dtype=torch.float64, device="cpu") / dim)
    angle = position / wavelength
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1)[:, :dim].float()


def sinusoid_halves(length: int, dim: int) -> Float[Tensor, "{length} {dim}"]:
    """Put the sines of `sinusoids` in front and the cosines behind, as Marian does."""
    table = sinusoids(length, dim)
    return torch.cat((table[:, 0::2], table[:, 1::2]), dim=1)


def open_sum(first: int) -> bool:
    """Whether `first` is an open length of a graph that is being exported.

    To compare its sum with another open length, or to slice a table up to there, would tie the two
    lengths to each other.
    """
    return torch.compiler.is_exporting() and isinstance(first, torch.SymInt)


def table_rows(table: Tensor, first: int, last: int) -> Tensor:
    """Return the rows first, first + 1, ... of a table that has them."""
    if open_sum(first):
        return table[torch.arange(first, last, device=table.device)]
    return table[first:last]


class SinusoidalPositions(nn.Module):
    """Add fixed sinusoids; any length, because the table is a formula."""

    table: Tensor
    formula = staticmethod(sinusoids)

    def __init__(self, length: int, dim: int) -> None:
        super().__init__()
        self.register_buffer("table", self.formula(length, dim), persistent=False)

    def forward(self, x: Tokens, first: int = 0) -> Tokens:
        """Add the positions first, first + 1, ... to the tokens of x."""
        check_axes(x, "batch token dim")
        last = first + x.shape[1]
        fits = open_sum(first) or last <= len(self.table)
        table = self.table if fits else self.formula(last, x.shape[2]).to(x)
        return x + table_rows(table, first, last).to(x.dtype)


class SinusoidalHalfPositions(SinusoidalPositions):
    """Add the same sinusoids in Marian's order; weights fit only the order they learned with."""

    formula = staticmethod(sinusoid_halves)


class LearnedPositions(nn.Module):
    """Add a learned vector a position (Dosovitskiy et al. 2021, E_pos in equation 1)."""

    def __init__(self, length: int, dim: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(length, dim))
        nn.init.trunc_normal_(self.table, std=0.02)

    def forward(self, x: Tokens, first: int = 0) -> Tokens:
        """Add the positions first, first + 1, ... to the tokens of x.

        Raises:
            UsageError: x reaches beyond the last position that was learned.
        """
        check_axes(x, "batch token dim")
        last = first + x.shape[1]
        if not open_sum(first) and last > len(self.table):
            raise UsageError(
                f"The input reaches position {last}, but only {len(self.table)} positions were "
                "learned. Shorten the input, or train with more positions or sinusoidal ones."
            )
        return x + table_rows(self.table, first, last)


class NoPositions(nn.Module):
    """Add nothing: the model sees a set."""

    def __init__(self, length: int, dim: int) -> None:
        super().__init__()

    def forward(self, x: Tokens, first: int = 0) -> Tokens:
        """Return x."""
        return x


class NoGridPositions(nn.Module):
    """Add nothing: the patches are a set.

    Other kinds add something to the tokens (`forward`) or to the scores of every attention
    (`bias`). All are made for a grid of patches behind `extra` tokens without a place.
    """

    def __init__(self, grid: Grid, extra: int, dim: int, *, std: float, heads: int = 1) -> None:
        super().__init__()
        self.grid = grid
        self.extra = extra

    def forward(self, x: Tokens, grid: Grid) -> Tokens:
        """Add the positions of a grid of this many rows and columns to the tokens of x."""
        return x

    def bias(self, grid: Grid) -> Float[Tensor, "1 head token token"] | None:
        """Give what is added to the scores, if anything is."""
        return None


class GridPositions(NoGridPositions):
    """Learned vectors for the patches and the extra tokens (ViT, section 3.1).

    The table is 1-D, (extra + rows * columns, dim); an image of another size gets it interpolated.
    """

    def __init__(self, grid: Grid, extra: int, dim: int, *, std: float, heads: int = 1) -> None:
        super().__init__(grid, extra, dim, std=std)
        self.table = nn.Parameter(torch.empty(extra + grid[0] * grid[1], dim))
        nn.init.normal_(self.table, std=std)

    def forward(self, x: Tokens, grid: Grid) -> Tokens:
        """Add the positions of a grid of this many rows and columns to the tokens of x."""
        return x + resize_grid(self.table, self.grid, grid, self.extra)


class SinusoidalGridPositions(NoGridPositions):
    """Fixed sinusoids for a grid: the first half of a vector tells the row, the second the column.

    In any size, because the table is a formula; tokens without a place get nothing added. As the
    fixed positions of Chen et al. 2021 ("An Empirical Study", section 4).
    """

    table: Tensor

    def __init__(self, grid: Grid, extra: int, dim: int, *, std: float, heads: int = 1) -> None:
        super().__init__(grid, extra, dim, std=std)
        if dim % 2:
            raise UsageError(
                f"2-D sinusoids give half of a vector to the rows, and dim {dim} is odd: choose an "
                "even one."
            )
        self.register_buffer("table", grid_sinusoids(grid, extra, dim), persistent=False)

    def forward(self, x: Tokens, grid: Grid) -> Tokens:
        """Add each token's position on the grid that x has."""
        same = grid == self.grid
        table = self.table if same else grid_sinusoids(grid, self.extra, x.shape[2]).to(x)
        return x + table.to(x.dtype)


def grid_sinusoids(grid: Grid, extra: int, dim: int) -> Float[Tensor, "token {dim}"]:
    """Sinusoids of the row beside those of the column, row by row, behind `extra` zeros."""
    rows, columns = (sinusoids(length, dim // 2) for length in grid)
    table = torch.cat((rows.repeat_interleave(grid[1], dim=0), columns.repeat(grid[0], 1)), dim=1)
    return torch.cat((table.new_zeros(extra, dim), table))


# torch's way of interpolation that suits making a grid smaller as well; timm's too.
ANTIALIASED = MappingProxyType({"mode": "bicubic", "align_corners": False, "antialias": True})


def resize_grid(
    table: Float[Tensor, "old dim"],
    old: Grid,
    new: Grid,
    extra: int,
    curve: Mapping[str, Any] = ANTIALIASED,
) -> Float[Tensor, "new dim"]:
    """Fit positions learned for one patch grid to another by 2-D interpolation (ViT, section 3.2).

    Args:
        table: `extra` rows for tokens without a place (the class token), then the grid row by row.
        old: rows and columns of the grid that the table was learned for.
        new: rows and columns wanted; need not be square.
        extra: rows in front that are kept as they are.
        curve: how to interpolate, as arguments of torch's `interpolate`.
    """
    if old == new:
        return table
    grid = table[extra:].unflatten(0, old).permute(2, 0, 1)[None]  # cell dim -> 1 dim row column
    # In fp32: torch has no antialiased interpolation of bf16 on a CPU.
    grid = F.interpolate(grid.float(), size=new, **curve)
    return torch.cat((table[:extra], grid[0].flatten(1).T.to(table.dtype)))
