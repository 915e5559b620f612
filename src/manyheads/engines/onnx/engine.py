"""ONNX Runtime as an engine."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from manyheads.engines.engine import TOO_LARGE, need
from manyheads.engines.onnx.graph_files import read_graphs
from manyheads.engines.onnx.graph_models import MODELS, Session
from manyheads.errors import FolderError, UsageError
from manyheads.nn.editing.seam import refuse_engine
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
        named = zip(self._names, inputs, strict=True)
        given = {name: each.numpy(force=True) for name, each in named}
        return [torch.from_numpy(each) for each in self._session.run(None, given)]


class GraphEngine(ABC):
    """Runs the graphs of an export, each in a session, on the CPU."""

    name: ClassVar[str]
    weights: ClassVar[str]  # pattern of the files that hold them

    def __init__(self, device: str | None, threads: int | None) -> None:
        if device is not None and find_device(device).type != "cpu":
            raise UsageError(f"`device` is {device!r}: the engine {self.name} runs on the CPU.")
        self.threads = threads

    @abstractmethod
    def session(self, path: Path, threads: int) -> Session:
        """Open the file of a graph."""

    def load(self, folder: ModelFolder, image_size: tuple[int, int] | None) -> nn.Module:
        """Open a session for each graph; without a number of threads, as torch chooses it.

        Raises:
            UsageError: another image size than the graph's.
        """
        path = engine_files(folder, self.name)
        if image_size is not None:
            image, (height, width) = folder.preprocessing(), image_size
            if image_size != (image.height, image.width):
                raise UsageError(
                    f"`image_size` is {height} x {width}, and the exported graph of {folder.name} "
                    f"takes {image.height} x {image.width}: leave it out, or use engine='torch'."
                )
        files = read_graphs(path)
        kind = MODELS.get(frozenset(files))
        if kind is None:
            raise FolderError(
                f"{folder.name}: no model is made of the graphs {', '.join(files)}. Export it "
                "again."
            )
        stored = sum(each.stat().st_size for each in path.glob(self.weights))
        self.threads = self.threads or threads_for(stored // 4)
        threads = self.threads or torch.get_num_threads()
        sessions = {name: self.session(path / each.file, threads) for name, each in files.items()}
        return kind(folder.recipe.config(), files, sessions, cache(folder.model))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Search and preprocess on the same number of threads."""
        refuse_engine(self.name)
        with limited_threads(self.threads), memory_errors(TOO_LARGE):
            yield


class OnnxEngine(GraphEngine):
    """Runs the graphs of `manyheads export --to onnx`."""

    name = "onnx"
    weights = "*.onnx"

    def __init__(self, device: str | None, threads: int | None) -> None:
        super().__init__(device, threads)
        need(["onnxruntime"], extra="onnx")

    def session(self, path: Path, threads: int) -> Session:
        """Open the file of a graph."""
        return OnnxSession(path, threads)
