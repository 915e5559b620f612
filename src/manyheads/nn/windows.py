"""Windows: a grid of tokens cut into tiles that attend within themselves (Liu et al. 2021, 3.2).

Cutting is a reshape: every window becomes a row of the batch of the one attention. Shifted windows
are the same after a cyclic shift of the grid, with a mask between parts that are no neighbours.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """How one grid of tokens is cut: rows and columns of the grid, of a window and of the shift.

    A grid that is no multiple of the window is padded below and on the right. Nobody attends to
    the padding, except with `padding_seen`, as in other libraries, where it is zeros that are
    projected like tokens. They pad before the shift or, with `shift_first`, after it.
    """

    grid: tuple[int, int]
    size: tuple[int, int]
    shift: tuple[int, int] = (0, 0)
    padding_seen: bool = False
    shift_first: bool = False

    @property
    def tiles(self) -> tuple[int, int]:
        """Count windows below and beside each other."""
        return -(-self.grid[0] // self.size[0]), -(-self.grid[1] // self.size[1])

    @property
    def rest(self) -> tuple[int, int]:
        """Count the rows and columns of padding."""
        rows, columns = (tiles * size for tiles, size in zip(self.tiles, self.size, strict=True))
        return rows - self.grid[0], columns - self.grid[1]

    @property
    def padding_attended(self) -> bool:
        """Say whether part of the attention goes to padding."""
        return self.padding_seen and any(self.rest)

    def cut(self, x: Float[Tensor, "image token dim"]) -> Float[Tensor, "window inside dim"]:
        """Give every window a batch row: those of the first image first, row by row."""
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

    def places(self) -> Int[Tensor, "window inside"]:
        """Tell for each place in each window of an image which token stands there; -1: padding."""
        tokens = self.grid[0] * self.grid[1]
        numbers = torch.arange(1.0, tokens + 1, dtype=torch.float64)  # exact, and 0 is padding
        return self.cut(numbers.view(1, tokens, 1)).squeeze(2).long() - 1

    def mask(self, images: int, device: torch.device) -> Bool[Tensor, "window 1 query key"] | None:
        """Tell which places of a window may attend to which, for a batch; None if all may."""
        mask = None
        if any(self.shift):
            regions = self.regions()
            mask = regions[:, :, None] == regions[:, None, :]
        if any(self.rest) and not self.padding_seen:
            present = (self.places() >= 0)[:, None, :]
            mask = present.expand(-1, present.shape[2], -1) if mask is None else mask & present
        return None if mask is None else mask.to(device).repeat(images, 1, 1).unsqueeze(1)

    def spread(
        self, weights: Float[Tensor, "window head query key"]
    ) -> Float[Tensor, "image head token token"]:
        """Lay the maps of all windows into one over all tokens; padding's share is left out."""
        places = self.places()
        tokens = self.grid[0] * self.grid[1]
        weights = weights.unflatten(0, (-1, len(places)))
        whole = weights.new_zeros(len(weights), weights.shape[2], tokens, tokens)
        for window, place in enumerate(places):
            (inside,) = torch.where(place >= 0)
            rows, columns = torch.meshgrid(place[inside], place[inside], indexing="ij")
            picked = weights[:, window][:, :, inside][:, :, :, inside]
            whole[:, :, rows, columns] = picked
        return whole

    def regions(self) -> Int[Tensor, "window inside"]:
        """Number the parts of the shifted grid whose tokens were neighbours before (figure 4)."""
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


def _bands(length: int, size: int, shift: int) -> Int[Tensor, "{length}"]:
    """Whole windows, what is left of the last, and what the shift brought round, along one axis."""
    if not shift:
        return torch.zeros(length, dtype=torch.long)
    index = torch.arange(length)
    return (index >= length - size).long() + (index >= length - shift).long()
