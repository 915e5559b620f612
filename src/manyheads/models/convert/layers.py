"""What converters share: layers that libraries store alike, and checks of settings and sizes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert.foreign import ForeignTensors, State, Tensors
from manyheads.nn.shapes import Grid

Size = int | Sequence[int]  # of an image: one number, or height and width


def prefixed(tensors: Tensors, prefix: str) -> State:
    """Return the tensors whose names begin with a prefix, without it."""
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def patches(
    weights: ForeignTensors, theirs: str, ours: str = "patches.project", *, bias: bool = True
) -> tuple[Tensor, State]:
    """Take the filters that patches are embedded with; return them as theirs, and our state."""
    kernel = weights.take(f"{theirs}.weight")
    state = {f"{ours}.weight": kernel.flatten(1)}
    return kernel, state | ({f"{ours}.bias": weights.take(f"{theirs}.bias")} if bias else {})


def packed(weights: ForeignTensors, theirs: Sequence[str], ours: str) -> State:
    """Take linear layers into one, below each other; biases that are not there are zeros."""
    weight = torch.cat([weights.take(f"{name}.weight") for name in theirs])
    has_bias = f"{theirs[0]}.bias" in weights
    biases = [weights.take(f"{name}.bias") for name in theirs] if has_bias else []
    bias = torch.cat(biases) if has_bias else weight.new_zeros(len(weight))
    return {f"{ours}.weight": weight, f"{ours}.bias": bias}


def encoder_blocks(
    weights: ForeignTensors,
    theirs: str,
    state: State,
    names: Mapping[str, Any],
    *,
    gated: bool = False,
    scaled: bool = False,
) -> int:
    """Take the numbered blocks below a prefix, and count them.

    Args:
        weights: their tensors.
        theirs: the prefix, which ends with a dot.
        state: gets the blocks.
        names: of their modules of a `block`, with ours; of `qkv`, which are one layer of ours; of
            the two layers of SwiGLU and of the gains, where blocks may have them.
        gated: whether the feed-forward part is SwiGLU: the gate lies above the values in one layer.
        scaled: whether the branches, of attention and of the feed-forward part, have gains.
    """
    depth = weights.count(theirs)
    plain = names["block"].items()
    modules = {n: ours for n, ours in plain if not (gated and ours.startswith("feedforward"))}
    for layer in range(depth):
        block, ours = f"{theirs}{layer}", f"encoder.blocks.{layer}"
        state |= weights.modules(block, ours, modules)
        qkv = [f"{block}.{part}" for part in names["qkv"]]
        state |= packed(weights, qkv, f"{ours}.attention.qkv")
        if gated:
            both, contract = (f"{block}.{part}" for part in names["gated"])
            state |= weights.module(contract, f"{ours}.feedforward.contract")
            for part in ("weight", "bias"):
                gate, expand = weights.take(f"{both}.{part}").chunk(2)
                state[f"{ours}.feedforward.gate.{part}"] = gate
                state[f"{ours}.feedforward.expand.{part}"] = expand
        if scaled:
            branches = ("around_attention", "around_feedforward")
            for gain, branch in zip(names["gains"], branches, strict=True):
                state[f"{ours}.{branch}.dropout.1.gain"] = weights.take(f"{block}.{gain}")
    return depth


def pointwise(weights: ForeignTensors, theirs: str, ours: str) -> State:
    """Take a 1 x 1 convolution as the linear layer that it is."""
    return {
        name: tensor.flatten(1) if tensor.ndim == 4 else tensor
        for name, tensor in weights.module(theirs, ours).items()
    }


def single(numbers: Sequence[object] | object, name: str) -> object:
    """Read a setting that another library gives per stage and Manyheads once per model.

    Raises:
        UsageError: the stages differ.
    """
    if not isinstance(numbers, list | tuple):
        return numbers
    if len(set(numbers)) != 1:
        raise UsageError(
            f"This model has {name} {tuple(numbers)}; one value for all stages is needed, so it "
            "cannot be converted."
        )
    return numbers[0]


def grid_positions(table: Tensor, grid: Grid, extra: int) -> Tensor:
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


def image_size(positions: int, extra: int, unit: int, stated: Sequence[Size | None]) -> Grid:
    """Find the image's height and width from the number of learned positions.

    Args:
        positions: how many there are.
        extra: tokens without a place, such as the class token, which may have a position or not.
        unit: pixels of the image a token, in height and in width.
        stated: sizes from a name, a configuration or the user: the first that fits is taken.
            If none does, the grid is taken to be square, as in weights tuned at another size.
    """
    sizes = [height_and_width(size) for size in stated if size is not None]
    for height, width in sizes:
        if (height // unit) * (width // unit) in (positions - extra, positions):
            return height, width
    for count in (positions - extra, positions):
        side = math.isqrt(max(count, 0))
        if side and side * side == count:
            return side * unit, side * unit
    return sizes[0] if sizes else (unit, unit)  # which is refused, as its grid is another


def height_and_width(size: Size) -> Grid:
    """Read a size that other libraries write as one number or two."""
    height, width = (size, size) if isinstance(size, int) else size
    return height, width


def height_width(size: Size) -> dict[str, Any]:
    """Return such a size as fields of a Config."""
    return dict(zip(("height", "width"), height_and_width(size), strict=True))
