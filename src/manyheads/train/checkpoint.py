"""Checkpoints of the training state: written atomically, verified by sha256 when read."""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from pydantic import TypeAdapter
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from manyheads.errors import FolderError
from manyheads.files import cannot_write, new_folder, remove_unfinished, sha256, write_text
from manyheads.strict_json import dumps, loads
from manyheads.train.average import Average
from manyheads.train.distribute import whole
from manyheads.train.meter import Sums
from manyheads.train.model_tensors import compare, restore, spread_like, tensors
from manyheads.train.optim import Optimizer
from manyheads.train.ranks import agreed, on_first, rank_and_world
from manyheads.train.sharded_checkpoint import BackgroundWriter, read, shapes

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
    metric: str = ""  # that metric
    stale: int = 0  # validations since it improved
    stopped: bool = False
    unlogged: Sums = field(default_factory=Sums)  # of steps since the last line of the log
    conditions: dict[str, str] = field(default_factory=dict)  # what bitwise equality depends on


PROGRESS = TypeAdapter(Progress)
HASHES = TypeAdapter(dict[str, str])


class Saver:
    """Writes the checkpoints of one process, at once."""

    def save(
        self,
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
        save(folder, model, optimizer, average, progress)

    def finish(self) -> None:
        """Wait until all is written."""


class RanksSaver(Saver):
    """Writes the checkpoints of several ranks, while training goes on."""

    def __init__(self) -> None:
        self._writer = BackgroundWriter()

    def save(
        self,
        folder: Path,
        model: nn.Module,
        optimizer: Optimizer,
        average: Average,
        progress: Progress,
    ) -> None:
        """Begin to write a checkpoint; an error of the one before it is raised here."""
        final = folder / f"step-{progress.step:09d}"
        self.finish()
        if on_first(final.exists):
            return
        state = {
            f"{part}/{name}": tensor.contiguous()
            for part, named in _parts(model, optimizer, average).items()
            for name, tensor in named.items()
        }
        document = {"progress": asdict(progress), "ranks": rank_and_world()[1]}
        self._writer.write(final, state, partial(_complete, document), partial(_remove_old, folder))

    def finish(self) -> None:
        """Wait until the last checkpoint is there."""
        self._writer.finish()


def saver() -> Saver:
    """Return what writes the checkpoints of this run."""
    return Saver() if rank_and_world()[1] == 1 else RanksSaver()


def _parts(
    model: nn.Module, optimizer: Optimizer, average: Average
) -> dict[str, dict[str, Tensor]]:
    return {
        "model": tensors(model),
        "optimizer": _optimizer_tensors(model, optimizer),
        "average": average.state,
    }


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
    with new_folder(final) as partial_folder:
        for name, state in _parts(model, optimizer, average).items():
            # Channels-last weights have another memory order than files.
            plain = {
                k: whole(t).contiguous() if torch.is_tensor(t) else t for k, t in state.items()
            }
            try:
                save_file(plain, partial_folder / f"{name}.safetensors")
            except (SafetensorError, OSError) as error:
                raise cannot_write(final, str(error)) from error
        _complete({"progress": asdict(progress)}, partial_folder)
    _remove_old(folder)


def _complete(document: dict[str, Any], folder: Path) -> None:
    """Describe a checkpoint whose tensors are written, with their hashes."""
    hashes = {path.name: sha256(path) for path in sorted(folder.glob("*.safetensors"))}
    write_text(folder / "progress.json", dumps(document | {"sha256": hashes}, indent=2))


def _remove_old(folder: Path) -> None:
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
        document = loads((found[-1] / "progress.json").read_text(encoding="utf-8"))
        return PROGRESS.validate_python(document["progress"])
    except (IndexError, OSError, ValueError, KeyError, TypeError):
        return None  # `load` reports the damage


def load(folder: Path, model: nn.Module, optimizer: Optimizer, average: Average) -> Progress | None:
    """Restore the newest checkpoint under folder; None if there is none.

    It may be of another number of ranks.

    Raises:
        FolderError: the newest checkpoint is damaged.
    """
    found = on_first(partial(checkpoints, folder))  # which grows while others look
    if not found:
        return None
    newest = found[-1]
    with agreed():
        document = on_first(partial(_checked, found))
        try:
            if _is_sharded(document):
                _read_sharded(newest, model, optimizer, average)
            else:
                _read_whole(newest, document, model, optimizer, average)
        except (OSError, ValueError, LookupError, TypeError, SafetensorError) as error:
            raise _damaged(found, error) from error
    return PROGRESS.validate_python(document["progress"])


def _checked(found: list[Path]) -> dict[str, Any]:
    """Read what the newest checkpoint is, and check the files."""
    newest = found[-1]
    try:
        document: dict[str, Any] = loads((newest / "progress.json").read_text(encoding="utf-8"))
        PROGRESS.validate_python(document["progress"])
        for name, expected in HASHES.validate_python(document["sha256"]).items():
            if sha256(newest / name) != expected:
                raise FolderError(f"{newest / name} has changed since it was written (sha256)")
    except (OSError, ValueError, KeyError, TypeError, FolderError) as error:
        raise _damaged(found, error) from error
    return document


def _damaged(found: list[Path], error: Exception) -> FolderError:
    older = f"resume from {found[-2].name}" if len(found) > 1 else "start again from the beginning"
    return FolderError(
        f"The checkpoint {found[-1]} is damaged: {error}. "
        f"Move that folder away to {older} with the same command."
    )


def _read_whole(
    folder: Path,
    document: dict[str, Any],
    model: nn.Module,
    optimizer: Optimizer,
    average: Average,
) -> None:
    """Read what one process wrote."""
    model_tensors = load_file(folder / "model.safetensors")
    optimizer_tensors = load_file(folder / "optimizer.safetensors")
    # Older checkpoints have no averages.
    averaged = "average.safetensors" in document["sha256"]
    averages = load_file(folder / "average.safetensors") if averaged else {}
    restore(model, model_tensors, folder)
    for name, value in optimizer_tensors.items():
        state, key, parameter = _slot(model, optimizer, name)
        # As torch does on loading: step counters of a fused optimizer are on the device of the
        # weights, and moments also have their memory format.
        if key == "step":
            state[key] = value.to(parameter.device)
        else:
            state[key] = torch.empty_like(parameter, dtype=value.dtype)
            state[key].copy_(spread_like(parameter, value))
    parameters = dict(model.named_parameters())
    average.state = {
        name: spread_like(own, tensor.to(own.device))
        for name, tensor in averages.items()
        for own in [_averaged(parameters, name)]
    }


def _read_sharded(folder: Path, model: nn.Module, optimizer: Optimizer, average: Average) -> None:
    """Read what several ranks wrote."""
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}, "average": {}}
    for name, stored in shapes(folder).items():
        part, _, rest = name.partition("/")
        parts[part][rest] = stored
    compare(model, parts["model"], folder)
    target = {f"model/{name}": tensor for name, tensor in tensors(model).items()}
    for name, stored in parts["optimizer"].items():
        state, key, parameter = _slot(model, optimizer, name)
        if key == "step":
            state[key] = torch.zeros(stored.shape, dtype=stored.dtype, device=parameter.device)
        else:
            state[key] = torch.empty_like(parameter, dtype=stored.dtype, requires_grad=False)
        target[f"optimizer/{name}"] = state[key]
    parameters = dict(model.named_parameters())
    average.state = {
        name: torch.empty_like(_averaged(parameters, name), requires_grad=False)
        for name in parts["average"]
    }
    target |= {f"average/{name}": tensor for name, tensor in average.state.items()}
    read(folder, target)


def _is_sharded(document: Mapping[str, Any]) -> bool:
    """Tell whether several ranks wrote a checkpoint."""
    return "ranks" in document


def read_model(found: list[Path], model: nn.Module) -> None:
    """Restore the weights alone from the newest of these checkpoints, which are of one run.

    Raises:
        FolderError: it is damaged, or not of this model.
    """
    newest = found[-1]
    if not _is_sharded(_checked(found)):
        restore(model, load_file(newest / "model.safetensors"), newest)
        return
    stored = {name: each for name, each in shapes(newest).items() if name.startswith("model/")}
    compare(model, {name.removeprefix("model/"): each for name, each in stored.items()}, newest)
    read(newest, {f"model/{name}": tensor for name, tensor in tensors(model).items()})


def _slot(
    model: nn.Module, optimizer: Optimizer, name: str
) -> tuple[dict[str, Tensor], str, nn.Parameter]:
    """Find the place of a tensor of the optimizer: its parameter's state, and the key there."""
    key, _, parameter = name.partition("/")
    own = model.get_parameter(parameter)
    return optimizer.state[own], key, own


def _averaged(parameters: Mapping[str, nn.Parameter], name: str) -> nn.Parameter:
    """Return the parameter that a tensor of an average belongs to: NAME or STEP/NAME."""
    return parameters[name.rpartition("/")[2]]


def _optimizer_tensors(model: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    return {
        f"{key}/{name}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }
