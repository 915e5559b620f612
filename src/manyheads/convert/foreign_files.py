"""Weights in the files of other libraries, read without running anything that is in them."""

import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError
from safetensors.torch import load_file
from torch import Tensor

from manyheads.errors import FolderError, NotFoundError, UsageError
from manyheads.models.model_config import ModelConfig
from manyheads.models.presets import build
from manyheads.project.folder import read_json
from manyheads.strict_json import dumps
from manyheads.train.model_tensors import restore

PICKLED = {".pth", ".pt", ".bin"}
SUFFIXES = (".safetensors", ".npz", *sorted(PICKLED))
DEEPEST = 32  # tables in tables, of JSON and of state dicts
WRAPPERS = ("state_dict", "model", "model_state_dict")  # under which training scripts keep weights


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a file of weights: safetensors, npz, or torch's own with nothing in it but tensors.

    Raises:
        NotFoundError: there is no such file.
        UsageError: not the name of a file of weights.
        FolderError: it is damaged, or holds objects that could run code.
    """
    if not path.is_file():
        raise NotFoundError(f"There is no file {path}.")
    if path.suffix not in SUFFIXES:
        raise UsageError(
            f"{path} is no file of weights known here: its name must end with "
            f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}."
        )
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        if path.suffix == ".npz":
            return _read_arrays(path)
        # Tensors only: other objects, which could run code, are refused.
        return _unwrapped(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:  # whatever reading a damaged file comes to
        if type(error).__name__ == "UnpicklingError":
            raise FolderError(
                f"{path} holds more than tensors, or is damaged: {first_line(error)} Objects in "
                "it could run code and are not read; ask for the weights as safetensors."
            ) from error
        raise FolderError(f"{path} cannot be read: {first_line(error)} Get it again.") from error


def _read_arrays(path: Path) -> dict[str, Tensor]:
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
    if damaged:
        raise ValueError(f"{damaged} in it is damaged.")
    with np.load(path) as arrays:  # of numbers only: numpy refuses pickled objects
        return {name: torch.from_numpy(arrays[name]) for name in arrays.files}


def _unwrapped(loaded: Any) -> dict[str, Tensor]:
    """Find the weights in what a training script stored."""
    for _ in range(DEEPEST):  # it may contain itself
        tables = loaded if isinstance(loaded, Mapping) else {}
        inner = [tables[key] for key in WRAPPERS if isinstance(tables.get(key), Mapping)]
        if not inner:
            break
        loaded = inner[0]
    named = loaded.items() if isinstance(loaded, Mapping) else ()
    tensors = {str(name): tensor for name, tensor in named if torch.is_tensor(tensor)}
    if not tensors:
        raise ValueError("There are no named tensors in it.")
    if all(name.startswith("module.") for name in tensors):  # trained on several devices
        tensors = {name.removeprefix("module."): tensor for name, tensor in tensors.items()}
    return tensors


def first_line(error: Exception) -> str:
    """Return the first line of a message, or the kind of error if it has none, as a sentence."""
    if isinstance(error, ValidationError):
        return f"{error.errors()[0]['msg']}."
    return (str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__) + "."


@contextmanager
def misfits(where: Path) -> Iterator[None]:
    """Convert the errors of computing with tensors whose shapes a file says.

    Raises:
        FolderError: the tensors do not fit together, or not the configuration.
    """
    try:
        yield
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise FolderError(
            f"The tensors of {where} do not go together, or not with its config.json: "
            f"{first_line(error)} Get the files again."
        ) from error


def check_fit(config: ModelConfig, state: Mapping[str, Tensor], where: Path) -> None:
    """Make sure that converted weights fit the model of their Config.

    Raises:
        FolderError: names or shapes differ.
    """
    with misfits(where), torch.device("meta"):  # a Config may ask for more than there is memory
        model = build(config)
    try:
        restore(model, state, where)
    except FolderError as error:
        differences = str(error).partition("\n")[2].rpartition("\n")[0]
        raise FolderError(
            f"The tensors of {where} do not go together, or not with its config.json:\n"
            f"{differences}\nGet the files again."
        ) from error


def find_table(path: Path) -> dict[str, Any] | None:
    """Read a JSON file that holds one table, as `read_table`; None if it is missing."""
    return read_table(path) if path.exists() else None


def read_table(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds one table.

    Raises:
        FolderError: it is missing, damaged, or something else.
    """
    value = read_json(path, "Get the folder again.")
    if not isinstance(value, dict):
        raise FolderError(f"{path} is not a table of keys and values. Get the folder again.")
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        nested = [each for each in level if isinstance(each, dict | list)]
        level = list(chain(*(e.values() if isinstance(e, dict) else e for e in nested)))
    if level:
        raise FolderError(f"{path} has tables in tables, over {DEEPEST} deep. Get it again.")
    try:
        dumps(value).encode()
    except UnicodeEncodeError as error:
        raise FolderError(f"{path} has text that is not UTF-8. Get it again.") from error
    return value


def read_license(folder: Path) -> str | None:
    """Read the licence from the head of the model's card."""
    try:
        text = (folder / "README.md").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    head = re.match(r"---\n(.*?)\n---", text, re.S)
    found = re.search(r"^license:\s*(\S+)", head[1], re.M) if head else None
    return found[1].strip("\"'") if found else None
