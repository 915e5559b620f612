"""Layers that several libraries store in the same way, as ours have them."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from manyheads.errors import UsageError
from manyheads.models.convert.foreign import ForeignTensors

# Buffers that are formulas, stored by some versions.
FORMULAS = ("relative_position_index", "attn_mask")


def learned(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Leave out what is stored but not learned."""
    return {name: tensor for name, tensor in tensors.items() if not name.endswith(FORMULAS)}


def batch_norm(given: ForeignTensors, theirs: str, ours: str) -> dict[str, Tensor]:
    """Take a batch normalisation with its running statistics."""
    state = given.module(theirs, ours)
    for part in ("running_mean", "running_var"):
        state[f"{ours}.{part}"] = given.take(f"{theirs}.{part}")
    counter = f"{theirs}.num_batches_tracked"  # files of old versions have none
    state[f"{ours}.num_batches_tracked"] = (
        given.take(counter) if counter in given else torch.zeros((), dtype=torch.long)
    )
    return state


def packed(given: ForeignTensors, theirs: Sequence[str], ours: str) -> dict[str, Tensor]:
    """Take linear layers into one, below each other; biases that are not there are zeros."""
    weight = torch.cat([given.take(f"{name}.weight") for name in theirs])
    has_bias = f"{theirs[0]}.bias" in given
    biases = [given.take(f"{name}.bias") for name in theirs] if has_bias else []
    bias = torch.cat(biases) if has_bias else weight.new_zeros(len(weight))
    return {f"{ours}.weight": weight, f"{ours}.bias": bias}


def pointwise(given: ForeignTensors, theirs: str, ours: str) -> dict[str, Tensor]:
    """Take a 1 x 1 convolution as the linear layer that it is."""
    return {
        name: tensor.flatten(1) if tensor.ndim == 4 else tensor
        for name, tensor in given.module(theirs, ours).items()
    }


def single(numbers: Sequence[object] | object, name: str) -> object:
    """Read a setting that another library gives for each stage and ours once.

    Raises:
        UsageError: the stages differ.
    """
    if not isinstance(numbers, list | tuple):
        return numbers
    if len(set(numbers)) != 1:
        raise UsageError(
            f"This model has {name} {tuple(numbers)}; ours has the same in every stage, so it "
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
            f"This {library} model is built with its own {', '.join(strange)}, for which ours has "
            "no place: only models of the default parts can be converted."
        )
