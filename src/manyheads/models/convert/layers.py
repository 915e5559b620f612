"""What converters share: layers that libraries store alike, and checks of settings and sizes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.components import Activation
from manyheads.models.convert.foreign import ForeignTensors, Settings, State, Tensors
from manyheads.nn.shapes import Grid

LARGEST = 1 << 24  # number in a configuration; vocabularies are the largest
# Buffers that are formulas, stored by some versions.
FORMULAS = ("relative_position_index", "attn_mask", "position_ids")
# What other libraries call activations.
ACTIVATION_NAMES: dict[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "gelu_tanh": "gelu-tanh",
    "quick_gelu": "quick-gelu",
    "silu": "silu",
    "swish": "silu",
}
LAYER_SCALE = 1e-5  # at first, where a file does not say it: of use only to train anew


def learned(tensors: Tensors) -> State:
    """Leave out what is stored but not learned."""
    return {name: tensor for name, tensor in tensors.items() if not name.endswith(FORMULAS)}


def prefixed(tensors: Tensors, prefix: str) -> State:
    """Return the tensors whose names begin with a prefix, without it."""
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def completed(settings: Settings | object, defaults: Settings) -> dict[str, Any]:
    """Put settings over the defaults; they may be an object with the same attributes.

    Raises:
        UsageError: one is of another type than its default, or a number out of all bounds.
    """
    given = settings if isinstance(settings, Mapping) else vars(settings)
    for key, usual in defaults.items():
        if key in given and not _is_like(given[key], usual):
            raise UsageError(
                f"The model's configuration has {key} = {given[key]!r:.80}; it should be like "
                f"{usual!r}. Correct it, or get the folder again."
            )
    return {**defaults, **given}


def _is_like(value: object, usual: object) -> bool:
    """Say whether a value is of its default's type; of numbers there may be several."""
    if usual is None or value == usual:
        return True
    if isinstance(usual, tuple | list):
        several = value if isinstance(value, tuple | list) else [value]
        return len(several) > 0 and all(_is_like(each, usual[0]) for each in several)
    if isinstance(usual, bool) or isinstance(value, bool | str):
        return isinstance(value, type(usual))
    if isinstance(value, tuple | list):
        return len(value) > 0 and all(_is_like(each, usual) for each in value)
    if not isinstance(value, int | float) or isinstance(usual, str):
        return False
    return 0 <= value <= LARGEST and (isinstance(usual, float) or isinstance(value, int))


def check_parts(settings: Settings, supported: Mapping[str, Sequence[object]], kind: str) -> None:
    """Refuse settings that tensors do not show, unless they are supported; the first is usual.

    Raises:
        UsageError: one is not.
    """
    for key, values in supported.items():
        if settings.get(key, values[0]) not in values:
            raise UsageError(
                f"This {kind} has {key} = {settings[key]!r}; only "
                f"{' or '.join(map(repr, values))} is supported."
            )


def patches(
    given: ForeignTensors, theirs: str, ours: str = "patches.project", *, bias: bool = True
) -> tuple[Tensor, State]:
    """Take the filters that patches are embedded with; return them as theirs, and our state."""
    kernel = given.take(f"{theirs}.weight")
    state = {f"{ours}.weight": kernel.flatten(1)}
    return kernel, state | ({f"{ours}.bias": given.take(f"{theirs}.bias")} if bias else {})


def packed(given: ForeignTensors, theirs: Sequence[str], ours: str) -> State:
    """Take linear layers into one, below each other; biases that are not there are zeros."""
    weight = torch.cat([given.take(f"{name}.weight") for name in theirs])
    has_bias = f"{theirs[0]}.bias" in given
    biases = [given.take(f"{name}.bias") for name in theirs] if has_bias else []
    bias = torch.cat(biases) if has_bias else weight.new_zeros(len(weight))
    return {f"{ours}.weight": weight, f"{ours}.bias": bias}


def layer_scales(given: ForeignTensors, pairs: Mapping[str, str]) -> State:
    """Take the gains of residual branches; `pairs` maps their names to our residual connections."""
    return {f"{ours}.dropout.1.gain": given.take(theirs) for theirs, ours in pairs.items()}


def swiglu(given: ForeignTensors, packed: str, contract: str, ours: str) -> State:
    """Take a gated feed-forward part whose gate lies above the values in one linear layer."""
    state = given.module(contract, f"{ours}.contract")
    for part in ("weight", "bias"):
        gate, expand = given.take(f"{packed}.{part}").chunk(2)
        state |= {f"{ours}.gate.{part}": gate, f"{ours}.expand.{part}": expand}
    return state


def activation(settings: Settings, key: str, library: str) -> Activation:
    """Translate the name that another library has for an activation.

    Raises:
        UsageError: there is no such activation here.
    """
    name = settings[key]
    if not isinstance(name, str) or name not in ACTIVATION_NAMES:
        raise UsageError(
            f"This {library} model has {key} {name!r:.80}; supported: "
            f"{', '.join(ACTIVATION_NAMES)}."
        )
    return ACTIVATION_NAMES[name]


def pointwise(given: ForeignTensors, theirs: str, ours: str) -> State:
    """Take a 1 x 1 convolution as the linear layer that it is."""
    return {
        name: tensor.flatten(1) if tensor.ndim == 4 else tensor
        for name, tensor in given.module(theirs, ours).items()
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


def refuse_strange(settings: Mapping[str, object], names: Sequence[str], library: str) -> None:
    """Make sure that nothing is set that changes the answer without leaving a trace in tensors.

    Raises:
        UsageError: something is.
    """
    strange = [name for name in names if settings.get(name)]
    if strange:
        raise UsageError(
            f"This {library} model is built with its own {', '.join(strange)}, for which there is "
            "no place: only models of the default parts can be converted."
        )


def vit_shape(
    state: Tensors, kernel: Tensor, size: int | Sequence[int], layers: int
) -> dict[str, Any]:
    """Read the sizes of a ViT or DeiT from its state dict and its patch filters."""
    height, width = height_and_width(size)
    return {
        "height": height,
        "width": width,
        "channels": kernel.shape[1],
        "patch": kernel.shape[2],
        "dim": kernel.shape[0],
        "layers": layers,
        "ffn_dim": len(state["encoder.blocks.0.feedforward.expand.bias"]),
        "classes": len(state["head.bias"]) if "head.bias" in state else 0,
    }


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


def check_settings(settings: Settings, actual: Mapping[str, int]) -> None:
    """Refuse tensors that contradict what is said under the same keys: they are another model's.

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
) -> Grid:
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


def height_and_width(size: int | Sequence[int]) -> Grid:
    """Read a size that other libraries write as one number or two."""
    height, width = (size, size) if isinstance(size, int) else size
    return height, width
