"""Attention within windows of a grid (Liu et al. 2021, "Swin Transformer", section 3.2).

Cutting is a reshape: every window becomes a row of the batch of `MultiHeadAttention`. Shifted
windows are the same after a cyclic shift of the grid, with a mask between parts that were not
neighbours.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from manyheads.nn.attention.attention import MultiHeadAttention
from manyheads.nn.attention.relative import RelativeBias
from manyheads.nn.shapes import Grid, Tokens, check_axes


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """How one grid of tokens is cut: rows and columns of the grid, of a window and of the shift.

    A grid that is no multiple of the window is padded below and on the right. The padding is
    masked; with `padding_seen`, as in other libraries, it is zeros that are projected and attended
    to like tokens. They pad before the shift or, with `shift_first`, after it.
    """

    grid: Grid
    size: Grid
    shift: Grid = (0, 0)
    padding_seen: bool = False
    shift_first: bool = False

    def __str__(self) -> str:
        """Describe a window in words."""
        shift = ", shifted by {} and {}".format(*self.shift) if any(self.shift) else ""
        return "window of {} x {}".format(*self.size) + shift

    @property
    def tiles(self) -> Grid:
        """The number of windows in each column and in each row."""
        return -(-self.grid[0] // self.size[0]), -(-self.grid[1] // self.size[1])

    @property
    def rest(self) -> Grid:
        """The number of rows and columns of padding."""
        rows, columns = (tiles * size for tiles, size in zip(self.tiles, self.size, strict=True))
        return rows - self.grid[0], columns - self.grid[1]

    @property
    def padding_attended(self) -> bool:
        """Whether part of the attention goes to padding."""
        return self.padding_seen and any(self.rest)

    def cut(self, x: Float[Tensor, "image token dim"]) -> Float[Tensor, "window inside dim"]:
        """Make every window a batch row: those of the first image first, row by row."""
        x = x.unflatten(1, self.grid)
        pad = (0, 0, 0, self.rest[1], 0, self.rest[0])
        x = F.pad(self._roll(x, -1), pad) if self.shift_first else self._roll(F.pad(x, pad), -1)
        x = x.unflatten(2, (-1, self.size[1])).unflatten(1, (-1, self.size[0]))
        return x.transpose(2, 3).flatten(3, 4).flatten(0, 2)  # image row y column x dim at first

    def join(self, x: Float[Tensor, "window inside dim"]) -> Float[Tensor, "image token dim"]:
        """Undo `cut`, and drop the padding."""
        x = x.unflatten(0, (-1, *self.tiles)).unflatten(3, self.size).transpose(2, 3)
        x = x.flatten(3, 4).flatten(1, 2)  # image row column dim
        rows, columns = self.grid
        if self.shift_first:
            x = self._roll(x[:, :rows, :columns], 1)
        else:
            x = self._roll(x, 1)[:, :rows, :columns]
        return x.flatten(1, 2)

    def token_index(self) -> Int[Tensor, "window inside"]:
        """For each position in each window of an image, the index of its token; -1 for padding."""
        tokens = self.grid[0] * self.grid[1]
        # Exact, and 0 is padding. Small, and read here: on the CPU, wherever the model is.
        numbers = torch.arange(1.0, tokens + 1, dtype=torch.float64, device="cpu")
        return self.cut(numbers.view(1, tokens, 1)).squeeze(2).long() - 1

    def mask(self, images: int, device: torch.device) -> Bool[Tensor, "window 1 query key"] | None:
        """Compute which positions of a window may attend to which, for a batch; None if all may."""
        mask = None
        if any(self.shift):
            regions = self.regions()
            mask = regions[:, :, None] == regions[:, None, :]
        if any(self.rest) and not self.padding_seen:
            present = (self.token_index() >= 0)[:, None, :]
            mask = present.expand(-1, present.shape[2], -1) if mask is None else mask & present
        return None if mask is None else mask.to(device).repeat(images, 1, 1).unsqueeze(1)

    def regions(self) -> Int[Tensor, "window inside"]:
        """Number the parts of the shifted grid that were connected before the shift (figure 4)."""
        rows, columns = (
            _bands(tiles * size, size, shift)
            for tiles, size, shift in zip(self.tiles, self.size, self.shift, strict=True)
        )
        padded = rows[:, None] * 3 + columns
        tiled = padded.unflatten(1, (-1, self.size[1])).unflatten(0, (-1, self.size[0]))
        return tiled.transpose(1, 2).flatten(2, 3).flatten(0, 1)

    def _roll(self, x: Tensor, direction: int) -> Tensor:
        if not any(self.shift):
            return x
        rows, columns = self.shift
        return x.roll((direction * rows, direction * columns), dims=(1, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """How windows that do not fit the grid are handled; libraries and their weights differ."""

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
        self, attention: MultiHeadAttention, window: Grid, *, shifted: bool, edges: Edges = Edges()
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

    def forward(self, x: Tokens, grid: Grid) -> Tokens:
        """Cut, attend, join."""
        check_axes(x, "batch token dim")
        windows = self.windows(grid)
        mask = windows.mask(x.shape[0], x.device)
        return windows.join(self.attention(windows.cut(x), mask, self.bias(self.window), windows))


def _bands(length: int, size: int, shift: int) -> Int[Tensor, "{length}"]:
    """Along one axis: 0 whole windows, 1 the rest of the last, 2 what the shift brought round."""
    if not shift:
        return torch.zeros(length, dtype=torch.long, device="cpu")
    index = torch.arange(length, device="cpu")
    return (index >= length - size).long() + (index >= length - shift).long()
