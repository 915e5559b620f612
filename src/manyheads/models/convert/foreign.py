"""Tensors of another library: each is taken once by name, and none may be left over.

So whatever the other model has that ours has not is refused, not dropped.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from manyheads.errors import UsageError


class ForeignTensors:
    """The tensors that have not been taken yet, and whose they are."""

    def __init__(self, tensors: Mapping[str, Tensor], library: str) -> None:
        self._left = dict(tensors)
        self._names = tuple(tensors)
        self._library = library

    def __contains__(self, name: str) -> bool:
        """Whether a tensor is there to be taken."""
        return name in self._left

    def take(self, name: str) -> Tensor:
        """Take one tensor.

        Raises:
            UsageError: it is not there.
        """
        if name not in self._left:
            raise UsageError(
                f"This {self._library} model has no tensor {name!r}, which ours needs (it has "
                f"{_shown(self._names) or 'none'}). Only plain models of this kind can be "
                "converted; check that the file is complete and of this kind."
            )
        return self._left.pop(name)

    def module(self, theirs: str, ours: str) -> dict[str, Tensor]:
        """Take the weight and bias of a module, under our name."""
        return {f"{ours}.{part}": self.take(f"{theirs}.{part}") for part in ("weight", "bias")}

    def convolution(self, theirs: str, ours: str) -> dict[str, Tensor]:
        """Take the filters of a convolution without bias, under our name."""
        return {f"{ours}.weight": self.take(f"{theirs}.weight")}

    def batch_norm(self, theirs: str, ours: str) -> dict[str, Tensor]:
        """Take a batch norm with its statistics, under our name."""
        state = self.module(theirs, ours)
        for part in ("running_mean", "running_var"):
            state[f"{ours}.{part}"] = self.take(f"{theirs}.{part}")
        # How many batches they saw: old files do not say, and nothing depends on it.
        name = f"{theirs}.num_batches_tracked"
        seen = self.take(name) if name in self else torch.zeros((), dtype=torch.long)
        return state | {f"{ours}.num_batches_tracked": seen}

    def count(self, prefix: str) -> int:
        """Count the numbered modules under a prefix that ends with a dot.

        Raises:
            UsageError: there is none.
        """
        names = (name.removeprefix(prefix) for name in self._left if name.startswith(prefix))
        numbers = {name.partition(".")[0] for name in names}
        if not numbers:
            raise UsageError(
                f"This {self._library} model has no tensors named {prefix}0, {prefix}1, ...: "
                "check that the file is complete and of this kind."
            )
        return len(numbers)

    def finish(self) -> None:
        """Make sure that everything has been taken.

        Raises:
            UsageError: the other model has parts that ours has not.
        """
        if self._left:
            raise UsageError(
                f"This {self._library} model has {len(self._left)} tensors that ours has no place "
                f"for: {_shown(sorted(self._left))}. Only plain models of this kind can be "
                "converted."
            )


def grid_positions(table: Tensor, grid: tuple[int, int], extra: int) -> Tensor:
    """Check that positions fit a grid of patches behind `extra` tokens.

    Extra tokens without a position get zeros, which add nothing.

    Raises:
        UsageError: they are the positions of another grid.
    """
    patches = grid[0] * grid[1]
    if len(table) == patches:
        return torch.cat((table.new_zeros(extra, table.shape[1]), table))
    if len(table) != extra + patches:
        raise UsageError(
            f"The model has {len(table)} positions, but its configuration asks for "
            f"{patches} patches ({grid[0]} x {grid[1]}) and {extra} tokens more: "
            "check that its image size is stated."
        )
    return table


def check_settings(settings: Mapping[str, Any], actual: Mapping[str, int]) -> None:
    """Refuse tensors that contradict what is said of them: they are another model's.

    Args:
        settings: what a name or a configuration says; what it leaves out is not compared.
        actual: what the tensors say, under the same keys.

    Raises:
        UsageError: they differ.
    """
    for key, value in actual.items():
        said = settings.get(key)
        if isinstance(said, int) and said != value:
            raise UsageError(
                f"The model is said to have {key} {said}, but its tensors have {value}: they "
                "belong to another architecture."
            )


def image_size(
    positions: int, extra: int, unit: int, stated: Sequence[int | Sequence[int] | None]
) -> tuple[int, int]:
    """Find the image's height and width from the number of learned positions.

    Args:
        positions: how many there are.
        extra: tokens without a place, such as the class token, which may have a position or not.
        unit: pixels of the image a token, in height and in width.
        stated: sizes that a name, a configuration or the user says: the first that fits counts.
            If none does, the grid is taken to be square, as in weights tuned at another size.
    """
    sizes = [height_and_width(size) for size in stated if size is not None]
    for height, width in sizes:
        if (height // unit) * (width // unit) in (positions - extra, positions):
            return height, width
    side = math.isqrt(max(positions - extra, 0))
    if side and side * side == positions - extra:
        return side * unit, side * unit
    return sizes[0] if sizes else (unit, unit)  # which is refused, as its grid is another


def height_and_width(size: int | Sequence[int]) -> tuple[int, int]:
    """Read a size that other libraries write as one number or two."""
    height, width = (size, size) if isinstance(size, int) else size
    return height, width


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
