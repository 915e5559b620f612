"""ONNX Runtime as an engine."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from manyheads.engines.engine import TOO_LARGE
from manyheads.engines.onnx.graph_files import read_graphs
from manyheads.engines.onnx.models import MODELS, GraphModel
from manyheads.engines.packages import need
from manyheads.errors import FolderError, UsageError
from manyheads.project.engine_files import engine_files
from manyheads.project.folder import ModelFolder
from manyheads.train.device import find_device, limited_threads, memory_errors, threads_for


class OnnxSession:
    """A graph in ONNX Runtime, on the CPU."""

    def __init__(self, path: Path, threads: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                os.fspath(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its own classes, which differ between versions
            raise FolderError(f"ONNX Runtime cannot read {path}: {error}.") from error
        self._names = [each.name for each in self._session.get_inputs()]

    def __call__(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run it on inputs in the graph's order; return its outputs in their order."""
        given = {
            name: each.numpy(force=True) for name, each in zip(self._names, inputs, strict=True)
        }
        return [torch.from_numpy(each) for each in self._session.run(None, given)]


class OnnxEngine:
    """Runs the graphs of `manyheads export --to onnx`."""

    name = "onnx"

    def __init__(self, device: str | None, threads: int | None) -> None:
        only_cpu(self.name, device)
        need(["onnxruntime"], extra="onnx")
        self.threads = threads

    def load(self, folder: ModelFolder, image_size: tuple[int, int] | None) -> nn.Module:
        """Open a session for each graph."""
        path = engine_files(folder, self.name)
        same_size(folder, image_size)
        self.threads = self.threads or threads_of(path, "*.onnx")
        files = read_graphs(path)
        threads = self.threads or torch.get_num_threads()
        sessions = {name: OnnxSession(path / each.file, threads) for name, each in files.items()}
        return graph_model(folder, files, sessions)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Search on the same number of threads."""
        with limited_threads(self.threads), memory_errors(TOO_LARGE):
            yield


def graph_model(folder: ModelFolder, files: Any, sessions: Any) -> GraphModel:
    """Make the model that has these graphs."""
    kind = MODELS.get(frozenset(files))
    if kind is None:
        raise FolderError(
            f"{folder.name}: no model is made of the graphs {', '.join(files)}. Export it again."
        )
    return kind(folder.recipe.config(), files, sessions, cache(partial(_torch_model, folder)))


def _torch_model(folder: ModelFolder) -> nn.Module:
    return folder.model()


def only_cpu(engine: str, device: str | None) -> None:
    """Refuse another device than the CPU.

    Raises:
        UsageError: it is another.
    """
    if device is not None and find_device(device).type != "cpu":
        raise UsageError(f"`device` is {device!r}: the engine {engine} runs on the CPU.")


def same_size(folder: ModelFolder, image_size: tuple[int, int] | None) -> None:
    """Refuse another image size than the graph's.

    Raises:
        UsageError: it is another.
    """
    if image_size is None:
        return
    image = folder.preprocessing()
    if image_size != (image.height, image.width):
        raise UsageError(
            f"`image_size` is {image_size[0]} x {image_size[1]}, and the exported graph of "
            f"{folder.name} takes {image.height} x {image.width}: leave it out, or use "
            "engine='torch'."
        )


def threads_of(path: Path, pattern: str) -> int | None:
    """Choose a number of threads by the size of the weights, as torch does; None: as many."""
    return threads_for(sum(each.stat().st_size for each in path.glob(pattern)) // 4)
