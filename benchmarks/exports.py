"""Our models as other runtimes run them, through the sessions of our engines."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import torch
from torch import Tensor, nn

from manyheads.data.images.image_set import Preprocessing
from manyheads.engines.onnx.graph_tracing import trace
from manyheads.engines.openvino.engine import OpenVinoSession, openvino
from manyheads.engines.openvino.exporter import faster, quantized
from manyheads.models.model_config import ImageConfig

OPENVINO: tuple[Literal["fp32", "bf16", "int8"], ...] = ("fp32", "bf16", "int8")
CALIBRATION = 16  # random images: the weights are random too, and only time is measured


def openvino_classifier(
    config: ImageConfig,
    model: nn.Module,
    precision: Literal["fp32", "bf16", "int8"],
    images: Tensor,
) -> Callable[[], object]:
    """Make the work of classifying images with OpenVINO."""
    (graph,) = config.graphs(model.eval())
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        trace(graph, path, {})
        found = openvino().Core().read_model(str(path))
        rest = "bfloat16" if precision == "bf16" else "float32"
        if precision == "int8":
            shape = (1, config.channels, config.height, config.width)
            found = quantized(found, [torch.randn(shape) for _ in range(CALIBRATION)])
            rest, _ = faster(found, Preprocessing(height=config.height, width=config.width))
        session = OpenVinoSession(found, rest, torch.get_num_threads())
    return lambda: session([images])
