"""OpenVINO as an engine."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from manyheads.engines.engine import TOO_LARGE
from manyheads.engines.onnx.engine import graph_model, only_cpu, same_size, threads_of
from manyheads.engines.onnx.graph_files import read_graphs
from manyheads.engines.openvino.library import openvino
from manyheads.engines.openvino.session import HINTS, OpenVinoSession
from manyheads.errors import FolderError
from manyheads.project.engine_files import engine_files
from manyheads.project.folder import ModelFolder, read_json
from manyheads.train.device import limited_threads, memory_errors

PRECISION = "precision.json"


class OpenVinoEngine:
    """Runs the graphs of `manyheads export --to openvino`."""

    name = "openvino"

    def __init__(self, device: str | None, threads: int | None) -> None:
        only_cpu(self.name, device)
        openvino()
        self.threads = threads

    def load(self, folder: ModelFolder, image_size: tuple[int, int] | None) -> nn.Module:
        """Compile each graph."""
        path = engine_files(folder, self.name)
        same_size(folder, image_size)
        precision = read_json(path / PRECISION)
        if precision not in HINTS:
            raise FolderError(f"{path / PRECISION} is none of {', '.join(HINTS)}. Export it again.")
        self.threads = self.threads or threads_of(path, "*.bin")
        files, threads = read_graphs(path), self.threads or torch.get_num_threads()
        sessions = {
            name: OpenVinoSession(path / each.file, precision, threads)
            for name, each in files.items()
        }
        return graph_model(folder, files, sessions)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Preprocess on the same number of threads."""
        with limited_threads(self.threads), memory_errors(TOO_LARGE):
            yield
