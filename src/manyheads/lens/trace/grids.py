"""Boxes of tokens in the original image, uncropped and in its own pixels."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch

from manyheads.lens.trace.attention_reader import Groups
from manyheads.nn.recording.attention_record import Partition
from manyheads.nn.recording.token_grid import TokenGrid

Box = list[float]  # row, column, height, width
DECIMALS = 2  # of a pixel


@dataclass(frozen=True, slots=True)
class Crop:
    """The part of an image that the model saw."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class GridView:
    """The tokens of one stage: first those without a position, then the grid, row by row.

    A token's box holds the pixels nearest to its centre, so boxes tile the part of the image that
    the model saw. The box of a patch is the patch; tokens of a convolution are embedded from more
    pixels, `field`.
    """

    extra: list[str]
    rows: int
    columns: int
    boxes: list[Box]
    field: list[float]  # height and width of a token's receptive field, without attention
    merged: int = 1  # tokens a side that are shown as one

    @property
    def labels(self) -> list[str]:
        """Name every token."""
        what = "patch" if self.merged == 1 else "patches"
        return [
            *self.extra,
            *(
                f"{what} {row + 1},{column + 1}"
                for row in range(self.rows)
                for column in range(self.columns)
            ),
        ]


def grid_view(grid: TokenGrid, crop: Crop, merged: int = 1) -> GridView:
    """Lay the tokens of the model's input over the image that the input was cut from."""
    rows, columns = _edges(grid, crop)
    down, across = _every(rows, merged), _every(columns, merged)
    high, wide = _scale(grid, crop)
    return GridView(
        extra=list(grid.extra),
        rows=len(down) - 1,
        columns=len(across) - 1,
        boxes=[
            _box(top, left, bottom, right)
            for top, bottom in pairwise(down)
            for left, right in pairwise(across)
        ],
        field=[
            round(grid.rows.receptive_field * high, DECIMALS),
            round(grid.columns.receptive_field * wide, DECIMALS),
        ],
        merged=merged,
    )


def merge(grid: TokenGrid, limit: int) -> int:
    """Choose how many tokens a side to show as one, so that at most `limit` are shown."""
    rows, columns = grid.shape
    size, extra = 1, len(grid.extra)
    while extra + -(-rows // size) * -(-columns // size) > max(limit, extra + 1):
        size += 1
    return size


def grid_groups(grid: TokenGrid, merged: int) -> Groups:
    """Group the tokens of a grid in squares; extra tokens are groups of their own."""
    rows, columns = grid.shape
    extra, across = len(grid.extra), -(-columns // merged)
    down = torch.arange(rows) // merged
    index = extra + (down[:, None] * across + torch.arange(columns) // merged).flatten()
    count = extra + -(-rows // merged) * across
    return Groups(torch.cat((torch.arange(extra), index)), count)


def window_boxes(partition: Partition, grid: TokenGrid, crop: Crop) -> list[list[list[Box]]]:
    """Compute the boxes that each window covers: window, group, box.

    Tokens attend to those of their group. A shifted window at the edge of the grid holds groups
    from opposite sides of the image, which are masked from each other.
    """
    rows, columns = _edges(grid, crop)
    regions = partition.regions()
    boxes = []
    for inside, region in zip(partition.token_index(), regions, strict=True):
        groups = []
        for number in region[inside >= 0].unique().tolist():
            tokens = inside[(inside >= 0) & (region == number)]
            down = sorted(set((tokens // partition.grid[1]).tolist()))
            across = sorted(set((tokens % partition.grid[1]).tolist()))
            groups.append(
                [
                    _box(rows[top], columns[left], rows[bottom], columns[right])
                    for top, bottom in _runs(down)
                    for left, right in _runs(across)
                ]
            )
        boxes.append(groups)
    return boxes


def _edges(grid: TokenGrid, crop: Crop) -> tuple[list[float], list[float]]:
    high, wide = _scale(grid, crop)
    return (
        [crop.top + edge * high for edge in grid.rows.edges(grid.image[0])],
        [crop.left + edge * wide for edge in grid.columns.edges(grid.image[1])],
    )


def _scale(grid: TokenGrid, crop: Crop) -> tuple[float, float]:
    """Pixels of the image to one of the model's input."""
    height, width = grid.image
    return (crop.bottom - crop.top) / height, (crop.right - crop.left) / width


def _every(edges: list[float], size: int) -> list[float]:
    return [*edges[:-1:size], edges[-1]]


def _box(top: float, left: float, bottom: float, right: float) -> Box:
    return [round(each, DECIMALS) for each in (top, left, bottom - top, right - left)]


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Join numbers that follow each other: the first, and one more than the last."""
    first = numbers[0]
    for number, following in pairwise([*numbers, -1]):
        if following != number + 1:
            yield first, number + 1
            first = following
