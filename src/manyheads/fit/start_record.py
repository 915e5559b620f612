"""The record of what a model was started from."""

from collections.abc import Iterable
from typing import Any

from manyheads.project.folder import ModelFolder
from manyheads.train.checkpoint import sha256


def start_record(folder: ModelFolder, names: Iterable[str]) -> dict[str, Any]:
    """Describe for start.json which tensors of a new model hold the weights of which other one."""
    digest = sha256(folder.path / "model.safetensors")
    return {"model": str(folder.path), "sha256": digest, "tensors": sorted(names)}
