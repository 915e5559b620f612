"""OpenVINO as an engine; it and NNCF are imported without their telemetry."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from manyheads.engines.engine import need
from manyheads.engines.onnx.engine import GraphEngine
from manyheads.engines.onnx.graph_models import Session
from manyheads.errors import FolderError
from manyheads.project.folder import read_json

TELEMETRY = "openvino_telemetry"
PRECISION = "precision.json"
# What OpenVINO is told to compute in; it would take bfloat16 by itself where a processor has it.
HINTS = {"float32": "f32", "bfloat16": "bf16"}


def openvino(name: str = "openvino") -> ModuleType:
    """Import OpenVINO, or "nncf", which quantizes.

    Raises:
        MissingExtraError: it is not installed.
    """
    need(["openvino", name], extra="openvino")
    # Both report their use to their makers by this package, and work without it.
    hidden = TELEMETRY not in sys.modules
    if hidden:
        sys.modules[TELEMETRY] = None  # type: ignore[assignment]
    try:
        if name == "nncf":
            import nncf as found
        else:
            import openvino as found
        return found
    finally:
        if hidden:
            sys.modules.pop(TELEMETRY, None)


class OpenVinoSession:
    """A graph that is compiled for the CPU."""

    def __init__(self, model: Path | Any, precision: str, threads: int) -> None:
        """Compile a file, or a model of OpenVINO.

        Args:
            model: either.
            precision: of what is not int8: "float32" or "bfloat16".
            threads: of the CPU.

        Raises:
            FolderError: the file is damaged.
        """
        core = openvino().Core()
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": HINTS[precision],
            "PERFORMANCE_HINT": "LATENCY",
        }
        try:
            read = core.read_model(os.fspath(model)) if isinstance(model, Path) else model
            self._compiled = core.compile_model(read, "CPU", settings)
        except (RuntimeError, ValueError) as error:
            raise FolderError(f"OpenVINO cannot read {model}: {error}.") from error

    def __call__(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Run it on inputs in the graph's order; return its outputs in their order."""
        found = self._compiled([each.numpy(force=True) for each in inputs])
        return [torch.from_numpy(found[output].copy()) for output in self._compiled.outputs]


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
