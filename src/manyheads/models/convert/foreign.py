"""Tensors of another library: each is taken once by name, and none may be left over.

So a part of the other model that has no equivalent here is refused, not dropped.
"""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import torch
from torch import Tensor

from manyheads.errors import FolderError, UsageError

Settings = Mapping[str, Any]
Tensors = Mapping[str, Tensor]
State = dict[str, Tensor]
# Buffers that are formulas, stored by some versions.
FORMULAS = ("relative_position_index", "attn_mask", "position_ids")
WEIGHTS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


class ForeignTensors:
    """The tensors that have not been taken yet, and whose they are."""

    def __init__(self, tensors: Tensors, library: str) -> None:
        self._left = {n: tensor for n, tensor in tensors.items() if not n.endswith(FORMULAS)}
        self._names = tuple(tensors)
        self.library = library

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(self, name: str) -> Tensor:
        """Take one tensor; those of 64 bits become 32.

        Raises:
            UsageError: it is not there, or holds no weights that can be converted.
            FolderError: it is empty, or a number in it is not finite.
        """
        if name not in self._left:
            raise UsageError(
                f"This {self.library} model has no tensor {name!r}, which is required (it has "
                f"{_shown(self._names) or 'none'}). Only plain models of this kind can be "
                "converted; check that the file is complete and of this kind."
            )
        tensor = self._left.pop(name)
        if tensor.layout != torch.strided or tensor.is_meta or tensor.dtype not in WEIGHTS:
            raise UsageError(
                f"The tensor {name!r} of this {self.library} model holds {_kind(tensor)}; weights "
                f"are {', '.join(map(_plain, WEIGHTS))}. Quantised or sparse models cannot be "
                "converted: get the weights that they were made of."
            )
        finite = torch.isfinite(tensor)
        if not tensor.numel() or not finite.all():
            found = f"{(~finite).sum()} of {tensor.numel()} numbers are not finite"
            raise FolderError(
                f"The tensor {name!r} of this {self.library} model is damaged: "
                f"{found if tensor.numel() else 'it is empty'}. Get the file again."
            )
        return tensor.float() if tensor.dtype == torch.float64 else tensor

    def shape(self, name: str) -> tuple[int, ...]:
        """Return a tensor's shape, without taking it; () if it is not there."""
        return tuple(self._left[name].shape) if name in self._left else ()

    def module(self, theirs: str, ours: str) -> State:
        """Take the weight and bias of a module, under our name."""
        return {f"{ours}.{part}": self.take(f"{theirs}.{part}") for part in ("weight", "bias")}

    def modules(self, theirs: str, ours: str, names: Mapping[str, str]) -> State:
        """Take several modules below a prefix; `names` maps their names to ours."""
        return {
            name: tensor
            for part, our_part in names.items()
            for name, tensor in self.module(f"{theirs}.{part}", f"{ours}.{our_part}").items()
        }

    def convolution(self, theirs: str, ours: str) -> State:
        """Take the filters of a convolution without bias, under our name."""
        return {f"{ours}.weight": self.take(f"{theirs}.weight")}

    def batch_norm(self, theirs: str, ours: str) -> State:
        """Take a batch norm with its statistics, under our name."""
        state = self.module(theirs, ours)
        for part in ("running_mean", "running_var"):
            state[f"{ours}.{part}"] = self.take(f"{theirs}.{part}")
        # How many batches they saw: old files do not say, and nothing depends on it.
        self._left.pop(f"{theirs}.num_batches_tracked", None)
        return state | {f"{ours}.num_batches_tracked": torch.zeros((), dtype=torch.long)}

    def skip(self, names: Sequence[str]) -> None:
        """Leave out tensors that the answer does not depend on, if they are there."""
        for name in names:
            self._left.pop(name, None)

    def within(self, prefixes: Sequence[str]) -> str:
        """Return the first of these prefixes that tensors have; the last if none has any."""
        found = (p for p in prefixes if any(name.startswith(p) for name in self._left))
        return next(found, prefixes[-1])

    def count(self, prefix: str) -> int:
        """Count the numbered modules under a prefix that ends with a dot.

        Raises:
            UsageError: there is none.
        """
        names = (name.removeprefix(prefix) for name in self._left if name.startswith(prefix))
        numbers = {name.partition(".")[0] for name in names}
        if not numbers:
            raise UsageError(
                f"This {self.library} model has no tensors named {prefix}0, {prefix}1, ...: "
                "check that the file is complete and of this kind."
            )
        return len(numbers)

    def reach(self, pattern: str, first: int = 0) -> int:
        """Count the tensors whose names are the pattern with the numbers from `first` on."""
        return next(n for n in count() if pattern.format(first + n) not in self)

    def finish(self) -> None:
        """Make sure that everything has been taken.

        Raises:
            UsageError: tensors are left over.
        """
        if self._left:
            raise UsageError(
                f"This {self.library} model has {len(self._left)} tensors that there is no place "
                f"for: {_shown(sorted(self._left))}. Only plain models of this kind can be "
                "converted."
            )


def _plain(kind: torch.dtype | torch.layout) -> str:
    return str(kind).removeprefix("torch.")


def _kind(tensor: Tensor) -> str:
    if tensor.is_meta:
        return "no values"
    layout = _plain(tensor.layout) + " " if tensor.layout != torch.strided else ""
    return layout + _plain(tensor.dtype)


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
