"""Checkpoints of the training state: written atomically, verified by sha256 when read."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from pydantic import TypeAdapter
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from manyheads.errors import FolderError
from manyheads.files import cannot_write, new_folder, remove_unfinished, write_text
from manyheads.strict_json import dumps
from manyheads.train.average import Average
from manyheads.train.distribute import whole
from manyheads.train.optim import Optimizer

KEPT = 2  # the newest, and one before it in case the newest is damaged from outside


@dataclass
class Progress:
    """The progress of a run. With the weights and the optimizer state, it suffices to resume."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    step: int = 0
    epoch: int = 0
    index: int = 0  # batches of this epoch already used
    seconds: float = 0.0
    best: float | None = None  # of the early-stopping metric
    stale: int = 0  # validations since it improved
    stopped: bool = False
    conditions: dict[str, str] = field(default_factory=dict)  # what bitwise equality depends on


PROGRESS = TypeAdapter(Progress)


def tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return parameters and persistent buffers by name; a tied one only under its first name."""
    names = model.state_dict().keys()
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor.detach() for name, tensor in named if name in names}


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
    own = tensors(model)
    wrong = [f"- {name}: missing" for name in own.keys() - stored.keys()]
    wrong += [f"- {name}: not part of this model" for name in stored.keys() - own.keys()]
    wrong += [
        f"- {name}: stored {tuple(stored[name].shape)}, the model has {tuple(own[name].shape)}"
        for name in own.keys() & stored.keys()
        if own[name].shape != stored[name].shape
    ]
    wrong += [
        f"- {name}: stored {stored[name].dtype}, the model has {own[name].dtype}"
        for name in own.keys() & stored.keys()
        if own[name].is_floating_point() != stored[name].is_floating_point()
    ]
    if wrong:
        listed = "\n".join(sorted(wrong)[:8])
        raise FolderError(
            f"{where} does not match the model of its recipe "
            f"({len(wrong)} differences):\n{listed}\n"
            "Use the recipe it was trained with, or train again."
        )
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(stored[name])


def save(
    folder: Path,
    model: nn.Module,
    optimizer: Optimizer,
    average: Average,
    progress: Progress,
) -> None:
    """Write a checkpoint under folder, atomically.

    Raises:
        OutputError: it cannot be written; earlier checkpoints are as they were.
    """
    final = folder / f"step-{progress.step:09d}"
    if final.exists():
        return
    with new_folder(final) as partial:
        for name, state in (
            ("model", tensors(model)),
            ("optimizer", _optimizer_tensors(model, optimizer)),
            ("average", average.state),
        ):
            # Channels-last weights have another memory order than files.
            plain = {
                k: whole(t).contiguous() if torch.is_tensor(t) else t for k, t in state.items()
            }
            try:
                save_file(plain, partial / f"{name}.safetensors")
            except (SafetensorError, OSError) as error:
                raise cannot_write(final, str(error)) from error
        hashes = {path.name: sha256(path) for path in sorted(partial.glob("*.safetensors"))}
        document = {"progress": asdict(progress), "sha256": hashes}
        write_text(partial / "progress.json", dumps(document, indent=2))
    for old in checkpoints(folder)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    remove_unfinished(folder)


def checkpoints(folder: Path) -> list[Path]:
    """List the complete checkpoints under folder, oldest first."""
    return sorted(folder.glob("step-*"))


def newest(folder: Path) -> Progress | None:
    """Read the progress of the newest checkpoint; None if there is none, or it is damaged."""
    found = checkpoints(folder)
    try:
        document = json.loads((found[-1] / "progress.json").read_text(encoding="utf-8"))
        return PROGRESS.validate_python(document["progress"])
    except (IndexError, OSError, ValueError, KeyError, TypeError):
        return None  # `load` reports the damage


def load(folder: Path, model: nn.Module, optimizer: Optimizer, average: Average) -> Progress | None:
    """Restore the newest checkpoint under folder; None if there is none.

    Raises:
        FolderError: the newest checkpoint is damaged.
    """
    found = checkpoints(folder)
    if not found:
        return None
    newest = found[-1]
    try:
        document = json.loads((newest / "progress.json").read_text(encoding="utf-8"))
        progress = PROGRESS.validate_python(document["progress"])
        for name, expected in document["sha256"].items():
            if sha256(newest / name) != expected:
                raise FolderError(f"{newest / name} has changed since it was written (sha256)")
        model_tensors = load_file(newest / "model.safetensors")
        optimizer_tensors = load_file(newest / "optimizer.safetensors")
        # Older checkpoints have no averages.
        averaged = "average.safetensors" in document["sha256"]
        averages = load_file(newest / "average.safetensors") if averaged else {}
    except (OSError, ValueError, KeyError, TypeError, FolderError) as error:
        older = (
            f"resume from {found[-2].name}" if len(found) > 1 else "start again from the beginning"
        )
        raise FolderError(
            f"The checkpoint {newest} is damaged: {error}. "
            f"Move that folder away to {older} with the same command."
        ) from error
    restore(model, model_tensors, newest)
    _restore_optimizer(model, optimizer, optimizer_tensors)
    device = next(model.parameters()).device
    average.state = {name: tensor.to(device) for name, tensor in averages.items()}
    return progress


def _optimizer_tensors(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    return {
        f"{key}/{name}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def _restore_optimizer(
    model: nn.Module, optimizer: Optimizer, stored: Mapping[str, Tensor]
) -> None:
    parameters = dict(model.named_parameters())
    for full_name, value in stored.items():
        key, _, name = full_name.partition("/")
        parameter = parameters[name]
        # As torch does on loading: step counters of a fused optimizer are on the device of the
        # weights, and moments also have their memory format.
        if key == "step":
            value = value.to(parameter.device)
        else:
            value = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
        optimizer.state[parameter][key] = value


def sha256(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
