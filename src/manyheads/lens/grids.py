"""Where tokens lie in the picture that a person knows, uncropped and in its own pixels."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch

from manyheads.lens.reading import Groups
from manyheads.nn.places import Places
from manyheads.nn.windows import Windows

Box = list[float]  # row, column, height, width
DECIMALS = 2  # of a pixel


@dataclass(frozen=True, slots=True)
class Crop:
    """The part of a picture that the model saw."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class GridView:
    """The tokens of one stage: first those that stand nowhere, then those on a grid, row by row.

    A token's box is what is nearest to its centre, so boxes tile what the model saw of the picture.
    Patches are their boxes; tokens of a convolution see more, `field`, and their boxes overlap.
    """

    extra: list[str]
    rows: int
    columns: int
    boxes: list[Box]
    field: list[float]  # height and width of what one token is embedded from, attention apart
    merged: int = 1  # so many tokens a side are shown as one

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


def grid_view(places: Places, crop: Crop, merged: int = 1) -> GridView:
    """Lay the tokens of the model's input over the picture that it was cut from."""
    rows, columns = _edges(places, crop)
    down, across = _every(rows, merged), _every(columns, merged)
    high, wide = _scale(places, crop)
    return GridView(
        extra=list(places.extra),
        rows=len(down) - 1,
        columns=len(across) - 1,
        boxes=[
            _box(top, left, bottom, right)
            for top, bottom in pairwise(down)
            for left, right in pairwise(across)
        ],
        field=[
            round(places.rows.field * high, DECIMALS),
            round(places.columns.field * wide, DECIMALS),
        ],
        merged=merged,
    )


def merge(places: Places, limit: int) -> int:
    """Choose how many tokens a side are shown as one, so that at most `limit` are shown."""
    rows, columns = places.grid
    size, extra = 1, len(places.extra)
    while extra + -(-rows // size) * -(-columns // size) > max(limit, extra + 1):
        size += 1
    return size


def grid_groups(places: Places, merged: int) -> Groups:
    """Group the tokens of a grid in squares; extra tokens stay by themselves."""
    rows, columns = places.grid
    extra, across = len(places.extra), -(-columns // merged)
    down = torch.arange(rows) // merged
    index = extra + (down[:, None] * across + torch.arange(columns) // merged).flatten()
    count = extra + -(-rows // merged) * across
    return Groups(torch.cat((torch.arange(extra), index)), count)


def window_boxes(windows: Windows, places: Places, crop: Crop) -> list[list[list[Box]]]:
    """Say what each window covers of the picture: window, group, box.

    Tokens attend to those of their group. A shifted window at the edge of the grid holds groups
    from opposite sides of the picture, which are hidden from each other.
    """
    rows, columns = _edges(places, crop)
    regions = windows.regions()
    found = []
    for inside, region in zip(windows.places(), regions, strict=True):
        groups = []
        for number in region[inside >= 0].unique().tolist():
            tokens = inside[(inside >= 0) & (region == number)]
            down = sorted(set((tokens // windows.grid[1]).tolist()))
            across = sorted(set((tokens % windows.grid[1]).tolist()))
            groups.append(
                [
                    _box(rows[top], columns[left], rows[bottom], columns[right])
                    for top, bottom in _runs(down)
                    for left, right in _runs(across)
                ]
            )
        found.append(groups)
    return found


def _edges(places: Places, crop: Crop) -> tuple[list[float], list[float]]:
    high, wide = _scale(places, crop)
    return (
        [crop.top + edge * high for edge in places.rows.edges(places.image[0])],
        [crop.left + edge * wide for edge in places.columns.edges(places.image[1])],
    )


def _scale(places: Places, crop: Crop) -> tuple[float, float]:
    """Pixels of the picture to one of the model's input."""
    height, width = places.image
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
