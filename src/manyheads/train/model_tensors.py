"""The tensors of a model by name: compared with stored ones, and restored from them."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from manyheads.errors import FolderError


def tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return parameters and persistent buffers by name; a tied one only under its first name."""
    # Not `state_dict`: under FSDP2 that spreads tensors over the ranks which had been gathered.
    others = {
        f"{prefix}.{name}".removeprefix(".")
        for prefix, part in model.named_modules()
        for name in part._non_persistent_buffers_set
    }
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.detach() for name, tensor in named if name not in others}


def not_finite(named: Mapping[str, Tensor]) -> list[str]:
    """Name the tensors that hold infinite numbers or NaN: a pass over memory, without a copy."""
    floating = {n: t for n, t in named.items() if t.is_floating_point() and t.numel()}
    return [n for n, t in floating.items() if not torch.stack(t.aminmax()).isfinite().all()]


def restore(model: nn.Module, stored: Mapping[str, Tensor], where: Path) -> None:
    """Copy stored tensors into a model.

    Raises:
        FolderError: names, shapes or kinds of numbers differ; the message lists the first
            differences.
    """
    compare(model, stored, where)
    with torch.no_grad():
        for name, tensor in tensors(model).items():
            tensor.copy_(spread_like(tensor, stored[name]))


def compare(model: nn.Module, stored: Mapping[str, Tensor], where: Path) -> None:
    """Refuse tensors that are not those of a model, as `restore` does."""
    own = tensors(model)
    wrong = [f"- {name}: missing" for name in own.keys() - stored.keys()]
    wrong += [f"- {name}: not part of this model" for name in stored.keys() - own.keys()]
    for name in own.keys() & stored.keys():
        x, other = own[name], stored[name]
        if x.shape != other.shape:
            wrong.append(f"- {name}: stored {tuple(other.shape)}, the model has {tuple(x.shape)}")
        if x.is_floating_point() != other.is_floating_point():
            wrong.append(f"- {name}: stored {other.dtype}, the model has {x.dtype}")
    if wrong:
        listed = "\n".join(sorted(wrong)[:8])
        raise FolderError(
            f"{where} does not match the model of its recipe "
            f"({len(wrong)} differences):\n{listed}\n"
            "Use the recipe it was trained with, or train again."
        )


def spread_like(own: Tensor, x: Tensor) -> Tensor:
    """Return this rank's part of a whole tensor, as `own` is spread by FSDP2; or all of it."""
    mesh, placements = getattr(own, "device_mesh", None), getattr(own, "placements", None)
    if mesh is None:
        return x
    from torch.distributed.tensor import distribute_tensor

    # Every rank has read the same: nothing is sent.
    return distribute_tensor(x.to(own.device), mesh, placements, src_data_rank=None)
