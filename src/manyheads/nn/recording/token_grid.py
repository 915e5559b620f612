"""Which pixels of an image each token was embedded from.

The arithmetic is that of receptive fields: Dumoulin & Visin 2016, "A guide to convolution
arithmetic"; Araujo et al. 2019, "Computing Receptive Fields", equations 1 to 4. `tracking.py`
applies it while a model runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from torch import nn

from manyheads.nn.shapes import Grid

REGISTER = "register"  # the names of register tokens begin with it


@runtime_checkable
class _Padding(Protocol):
    """A padding in front of a convolution that depends on the size of the input."""

    def zeros(self, length: int) -> Grid:
        """Count the zeros before and after a side of this length."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Tokens along one side of an image, in pixels of the model's input.

    Token i was embedded from the `receptive_field` pixels that begin at `first + i * stride`. What
    attention and squeeze-and-excitation mixed in from elsewhere is not counted.
    """

    count: int
    first: int = 0
    stride: int = 1
    receptive_field: int = 1

    def through(self, size: int, stride: int = 1, zeros: int = 0, *, count: int) -> "Axis":
        """Apply a convolution of this size and stride, with `zeros` before the first token."""
        return Axis(
            count,
            self.first - zeros * self.stride,
            self.stride * stride,
            self.receptive_field + (size - 1) * self.stride,
        )

    def centres(self) -> list[float]:
        """Compute the centre of each token."""
        return [
            self.first + self.receptive_field / 2 + index * self.stride
            for index in range(self.count)
        ]

    def edges(self, length: int) -> list[float]:
        """Cut a side of so many pixels into one cell a token: the points nearest to its centre."""
        between = [centre + self.stride / 2 for centre in self.centres()[:-1]]
        return [0.0, *(min(max(edge, 0.0), float(length)) for edge in between), float(length)]


@dataclass(frozen=True, slots=True)
class TokenGrid:
    """The tokens of an image: extra ones without a position, then a grid, row by row."""

    image: Grid  # height and width of the model's input
    rows: Axis
    columns: Axis
    extra: tuple[str, ...] = ()  # names of the tokens without a position, such as "class token"

    @property
    def shape(self) -> Grid:
        """Rows and columns of tokens."""
        return self.rows.count, self.columns.count

    @property
    def count(self) -> int:
        """The number of all tokens."""
        return len(self.extra) + self.rows.count * self.columns.count

    @property
    def summaries(self) -> list[int]:
        """Indices of the extra tokens that stand for the image: all but the registers."""
        return summary_tokens(self.extra)

    def through(
        self, size: int | Grid, stride: int | Grid = 1, zeros: Grid = (0, 0), *, grid: Grid
    ) -> "TokenGrid":
        """Apply a convolution or a pool with this output grid; extra tokens stay."""
        sizes, strides = _two(size), _two(stride)
        return replace(
            self,
            rows=self.rows.through(sizes[0], strides[0], zeros[0], count=grid[0]),
            columns=self.columns.through(sizes[1], strides[1], zeros[1], count=grid[1]),
        )


def summary_tokens(extra: Sequence[str]) -> list[int]:
    """Return the indices of the extra tokens with these names that are no registers."""
    return [index for index, name in enumerate(extra) if not name.startswith(f"{REGISTER} ")]


def conv_output_grid(grid: TokenGrid, part: nn.Module) -> TokenGrid:
    """Compute the tokens behind a convolution or a pool.

    The module's own attributes are read: `kernel_size`, `stride`, `padding`, `ceil_mode`, and a
    `pad` in front of it that computes the zeros of each side.
    """
    sizes, strides, paddings = (
        _two(getattr(part, n)) for n in ("kernel_size", "stride", "padding")
    )
    counted = [_zeros(part, *side) for side in zip(grid.shape, paddings, strict=True)]
    shape = [
        -(-(length + sum(zeros) - size) // stride) + 1
        if getattr(part, "ceil_mode", False)
        else (length + sum(zeros) - size) // stride + 1
        for length, zeros, size, stride in zip(grid.shape, counted, sizes, strides, strict=True)
    ]
    front = counted[0][0], counted[1][0]
    return grid.through(sizes, strides, front, grid=(shape[0], shape[1]))


def _zeros(part: nn.Module, length: int, padding: int) -> Grid:
    pad = getattr(part, "pad", None)
    return pad.zeros(length) if isinstance(pad, _Padding) else (padding, padding)


def _two(number: int | Grid) -> Grid:
    """Read a setting that torch stores as one number or as one a side."""
    return number if isinstance(number, tuple) else (number, number)
