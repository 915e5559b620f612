"""OpenVINO as an engine."""

from pathlib import Path

from manyheads.engines.onnx.engine import GraphEngine
from manyheads.engines.onnx.graph_models import Session
from manyheads.engines.openvino.library import openvino
from manyheads.engines.openvino.session import HINTS, OpenVinoSession
from manyheads.errors import FolderError
from manyheads.project.folder import read_json

PRECISION = "precision.json"


class OpenVinoEngine(GraphEngine):
    """Runs the graphs of `manyheads export --to openvino`."""

    name = "openvino"
    weights = "*.bin"

    def __init__(self, device: str | None, threads: int | None) -> None:
        super().__init__(device, threads)
        openvino()

    def session(self, path: Path, threads: int) -> Session:
        """Compile a graph, to compute in the precision that the export chose."""
        file = path.with_name(PRECISION)
        precision = read_json(file)
        if precision not in HINTS:
            raise FolderError(f"{file} is none of {', '.join(HINTS)}. Export it again.")
        return OpenVinoSession(path, precision, threads)
