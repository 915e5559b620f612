"""A graph in OpenVINO."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manyheads.engines.openvino.library import openvino
from manyheads.errors import FolderError

# What OpenVINO is told to compute in; it would take bfloat16 by itself where a processor has it.
HINTS = {"float32": "f32", "bfloat16": "bf16"}


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
