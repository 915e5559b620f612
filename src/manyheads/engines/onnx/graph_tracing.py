"""From a torch module to an ONNX file: traced by torch.export, with its open axes."""

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim

from manyheads.models.exported_graphs import Graph
from manyheads.version import __version__

# Read by ONNX Runtime from 1.17, by onnxruntime-web of the same version, and by OpenVINO.
OPSET = 20
MOST = 1_900_000_000  # bytes of a file with its weights in it: protobuf ends at 2 GiB


def trace(graph: Graph, path: Path, metadata: Mapping[str, str]) -> None:
    """Write a module as ONNX; of a large model the weights lie beside it, in `path`.data.

    Args:
        graph: the module, with its inputs.
        path: of the file.
        metadata: texts that the file carries along.
    """
    names = {name for each in graph.inputs for name in each.axes.values()}
    open_axes: dict[str, Any] = {
        name: Dim(name, min=0 if name in graph.empty else 1, max=graph.limits.get(name))
        for name in names
    }
    shapes: list[dict[int, Any]] = [
        {axis: open_axes[name] for axis, name in each.axes.items()} for each in graph.inputs
    ]
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            graph.module,
            graph.arguments([each.example for each in graph.inputs]),
            dynamo=True,
            opset_version=OPSET,
            dynamic_shapes=graph.arguments(shapes),
            input_names=[each.name for each in graph.inputs],
            output_names=[*graph.outputs],
            verbose=False,
        )
        assert program is not None
        program.model.producer_name = "manyheads"
        program.model.producer_version = __version__
        program.model.metadata_props.update(metadata)
        size = sum(4 * each.numel() for each in graph.module.parameters())
        program.save(str(path), external_data=size > MOST)


@contextmanager
def _quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)
