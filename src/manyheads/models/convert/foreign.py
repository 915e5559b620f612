"""Tensors of another library: each is taken once by name, and none may be left over.

So whatever the other model has that ours has not is refused, not dropped.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from manyheads.errors import UsageError


class ForeignTensors:
    """The tensors that have not been taken yet, and whose they are."""

    def __init__(self, tensors: Mapping[str, Tensor], library: str) -> None:
        self._left = dict(tensors)
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
                f"This {self._library} model has no tensor {name!r}, which ours needs. "
                "Only plain models of this kind can be converted; check that the file is complete."
            )
        return self._left.pop(name)

    def module(self, theirs: str, ours: str) -> dict[str, Tensor]:
        """Take the weight and bias of a module, under our name."""
        return {f"{ours}.{part}": self.take(f"{theirs}.{part}") for part in ("weight", "bias")}

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
            names = sorted(self._left)
            shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
            raise UsageError(
                f"This {self._library} model has {len(names)} tensors that ours has no place for: "
                f"{shown}. Only plain models of this kind can be converted."
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


def height_and_width(size: int | Sequence[int]) -> tuple[int, int]:
    """Read a size that other libraries write as one number or two."""
    height, width = (size, size) if isinstance(size, int) else size
    return height, width
