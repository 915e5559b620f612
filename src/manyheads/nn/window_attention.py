"""Attention within windows: reshapes around the one attention (Liu et al. 2021, section 3.2)."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.attention import MultiHeadAttention
from manyheads.nn.relative import RelativeBias
from manyheads.nn.windows import Windows

Grid = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """What happens where windows do not fit the grid; libraries differ, and so do their weights."""

    padding_seen: bool = False  # tokens attend to the padding
    shift_first: bool = False  # the grid is padded after it has been shifted
    shift_together: bool = False  # one window that covers an axis stops the shift along both
    shrink: bool = True  # a model is built with smaller windows where the grid is smaller

    def size(self, window: Grid, grid: Grid) -> Grid:
        """Choose the window that a model for this grid is built with."""
        if not self.shrink:
            return window
        return min(window[0], grid[0]), min(window[1], grid[1])

    def shift(self, window: Grid, grid: Grid) -> Grid:
        """Shift by half a window, but not along an axis that one window covers."""
        rows, columns = (
            size // 2 if length > size else 0 for size, length in zip(window, grid, strict=True)
        )
        if self.shift_together and not (grid[0] > window[0] and grid[1] > window[1]):
            return 0, 0
        return rows, columns


class WindowedAttention(nn.Module):
    """Self-attention of every token with those in its window, plus a bias for their distance."""

    def __init__(
        self,
        attention: MultiHeadAttention,
        window: Grid,
        *,
        shifted: bool,
        edges: Edges = Edges(),
    ) -> None:
        super().__init__()
        self.attention = attention
        self.bias = RelativeBias(window, attention.heads)
        self.window = window
        self.shifted = shifted
        self.edges = edges

    def windows(self, grid: Grid) -> Windows:
        """Cut a grid of any size."""
        return Windows(
            grid=grid,
            size=self.window,
            shift=self.edges.shift(self.window, grid) if self.shifted else (0, 0),
            padding_seen=self.edges.padding_seen,
            shift_first=self.edges.shift_first,
        )

    def forward(
        self, x: Float[Tensor, "batch token dim"], grid: Grid
    ) -> Float[Tensor, "batch token dim"]:
        """Cut, attend, join."""
        windows = self.windows(grid)
        mask = windows.mask(len(x), x.device)
        return windows.join(self.attention(windows.cut(x), mask, self.bias(self.window), windows))
