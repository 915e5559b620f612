"""Where tokens stand in a picture, for an open recorder to say what attention compares.

Parts that make tokens of pixels, or fewer tokens of many, tell the recorder what they did; so it
knows at every attention where its queries and keys stand, whatever the model. Nothing of this
takes part in the computation, and without a recorder nothing happens.

The arithmetic is that of receptive fields: Dumoulin & Visin 2016, "A guide to convolution
arithmetic"; Araujo et al. 2019, "Computing Receptive Fields", equations 1 to 4.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn

from manyheads.nn.trace import active

Grid = tuple[int, int]


@runtime_checkable
class _Padding(Protocol):
    """What stands in front of a convolution that is padded by the size of its input."""

    def zeros(self, length: int) -> Grid:
        """Count the zeros in front of a side of this length, and behind it."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Tokens along one side of a picture, in pixels of the model's input.

    Token i was embedded from the `field` pixels that begin at `first + i * step`. What attention
    and squeeze-and-excitation mixed in from elsewhere is not counted.
    """

    count: int
    first: int = 0
    step: int = 1
    field: int = 1

    def through(self, size: int, stride: int = 1, zeros: int = 0, *, count: int) -> "Axis":
        """Make one token of `size` in a row, every `stride`; `zeros` stand before the first."""
        return Axis(
            count,
            self.first - zeros * self.step,
            self.step * stride,
            self.field + (size - 1) * self.step,
        )

    def centres(self) -> list[float]:
        """Say where the middle of each token stands."""
        return [self.first + self.field / 2 + index * self.step for index in range(self.count)]

    def edges(self, length: int) -> list[float]:
        """Cut a side of so many pixels into one cell a token: what is nearest to its centre."""
        between = [centre + self.step / 2 for centre in self.centres()[:-1]]
        return [0.0, *(min(max(edge, 0.0), float(length)) for edge in between), float(length)]


@dataclass(frozen=True, slots=True)
class Places:
    """The tokens that a model is at: on a grid, and in front of them those that stand nowhere."""

    image: Grid  # height and width of the model's input
    rows: Axis
    columns: Axis
    extra: tuple[str, ...] = ()

    @property
    def grid(self) -> Grid:
        """Rows and columns of tokens."""
        return self.rows.count, self.columns.count

    @property
    def count(self) -> int:
        """How many tokens there are in all."""
        return len(self.extra) + self.rows.count * self.columns.count

    def through(self, size: int, stride: int = 1, zeros: Grid = (0, 0), *, grid: Grid) -> "Places":
        """Say where the tokens of a convolution or a pool stand; extra tokens pass by."""
        return replace(
            self,
            rows=self.rows.through(size, stride, zeros[0], count=grid[0]),
            columns=self.columns.through(size, stride, zeros[1], count=grid[1]),
        )


def begin(images: Float[Tensor, "batch channel height width"]) -> None:
    """Stand on the pixels: a model of images begins."""
    trace = active()
    if trace is not None:
        height, width = images.shape[2:]
        trace.here = Places((height, width), Axis(height), Axis(width))


def leave() -> None:
    """Stand nowhere: a model of text begins."""
    trace = active()
    if trace is not None:
        trace.here = None


def here() -> Places | None:
    """Say where the tokens stand; None if nobody asks, or if there is no picture."""
    trace = active()
    return None if trace is None else trace.here


def see(size: int, stride: int, *, zeros: int = 0, grid: Grid) -> None:
    """Follow a convolution or a pool whose result has this grid."""
    trace = active()
    if trace is not None and trace.here is not None:
        trace.here = trace.here.through(size, stride, (zeros, zeros), grid=grid)


def see_through(parts: Iterable[nn.Module]) -> None:
    """Follow parts that run one after the other; those without a kernel leave tokens in place."""
    trace = active()
    if trace is None or trace.here is None:
        return
    for part in parts:
        if hasattr(part, "kernel_size"):
            trace.here = behind(trace.here, part)


def behind(places: Places, part: nn.Module) -> Places:
    """Say where the tokens behind a convolution or a pool of square windows stand.

    What torch does, in its own words: `kernel_size`, `stride`, `padding`, `ceil_mode`. A `pad` in
    front knows how many zeros a side gets.
    """
    size, stride, padding = (_one(getattr(part, n)) for n in ("kernel_size", "stride", "padding"))
    counted = [_zeros(part, length, padding) for length in places.grid]
    grid = [
        -(-(length + sum(zeros) - size) // stride) + 1
        if getattr(part, "ceil_mode", False)
        else (length + sum(zeros) - size) // stride + 1
        for length, zeros in zip(places.grid, counted, strict=True)
    ]
    front = counted[0][0], counted[1][0]
    return places.through(size, stride, front, grid=(grid[0], grid[1]))


def put_in_front(names: tuple[str, ...]) -> None:
    """Say that tokens with these names, which stand nowhere, were put before the others."""
    trace = active()
    if trace is not None and trace.here is not None:
        trace.here = replace(trace.here, extra=names + trace.here.extra)


def _zeros(part: nn.Module, length: int, padding: int) -> Grid:
    pad = getattr(part, "pad", None)
    return pad.zeros(length) if isinstance(pad, _Padding) else (padding, padding)


def _one(number: int | tuple[int, ...]) -> int:
    """Read what torch writes as one number or as two."""
    return number[0] if isinstance(number, tuple) else number
