"""Models as ONNX graphs in ONNX Runtime, run by `test_onnx.py`: with other sizes than traced.

As in `exported.py`, without the hook that checks shapes. Prints the largest relative gap of each.
"""

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import onnxruntime
import torch
from torch import Tensor

from manyheads.engines.onnx.engine import OnnxSession
from manyheads.engines.onnx.graph_tracing import trace
from manyheads.models.exported_graphs import GraphInput
from manyheads.models.model_config import ModelConfig
from tests.models.exported import VARIANTS
from tests.small import ALL, TRANSFORMERS, randomise

EVERY: dict[str, ModelConfig] = {
    **ALL,
    **VARIANTS,
    "learned positions": TRANSFORMERS["learned positions"],
    "marian": TRANSFORMERS["marian"],
    **{
        f"gpt {name}": replace(ALL["gpt-tiny"], positions=name)
        for name in ("learned", "sinusoidal", "rotary")
    },
}
SIZES = (
    {
        "sentences": 1,
        "beams": 1,
        "past": 0,
        "source": 3,
        "tokens": 2,
        "images": 1,
        "texts": 1,
        "positions": 1,
    },
    {
        "sentences": 3,
        "beams": 4,
        "past": 7,
        "source": 9,
        "tokens": 7,
        "images": 3,
        "texts": 5,
        "positions": 4,
    },
)
WIDTHS = (20, 24)  # of a line


def example(given: GraphInput, sizes: dict[str, int], seed: int) -> Tensor:
    """An input of other sizes; the last part of a source is padding."""
    generator = torch.Generator().manual_seed(seed)
    shape = [
        sizes[given.axes[axis]] if axis in given.axes else size
        for axis, size in enumerate(given.example.shape)
    ]
    if given.example.dtype == torch.bool:
        real = torch.ones(shape, dtype=torch.bool)
        real[:, -1] = False
        return real
    if given.name == "positions":  # of the tokens, the last one too
        return torch.arange(sizes["tokens"])[-sizes["positions"] :]
    if given.example.dtype == torch.long:
        return torch.randint(1, 9, shape, generator=generator)
    return torch.randn(shape, generator=generator)


def gap(config: ModelConfig, path: Path) -> float:
    """Trace all graphs of a model; return the largest gap to eager, by the largest value."""
    model = randomise(config.build()).eval()
    gaps = []
    graphs = config.graphs(model)
    assert graphs, "no graphs"
    for graph in graphs:
        trace(graph, path / "graph.onnx", {})
        session = OnnxSession(path / "graph.onnx", 1)
        for sizes, width in zip(SIZES, WIDTHS, strict=True):
            given = [
                example(each, {**sizes, "width": width}, seed)
                for seed, each in enumerate(graph.inputs)
            ]
            with torch.inference_mode():
                expected = graph.module(*graph.arguments(given))
            expected = expected if isinstance(expected, tuple) else (expected,)
            for ours, theirs in zip(expected, session(given), strict=True):
                assert ours.shape == theirs.shape, (graph.name, ours.shape, theirs.shape)
                largest = ours.float().abs().max()
                gaps.append((ours.float() - theirs.float()).abs().max() / largest)
    return max(gaps).item()


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(3)
    found: dict[str, float | str] = {}
    same: dict[ModelConfig, float | str] = {}  # at test size, some presets are the same model
    with TemporaryDirectory() as folder:
        for name in sys.argv[1:]:
            config = EVERY[name]
            if config not in same:
                try:
                    same[config] = gap(config, Path(folder))
                except Exception as error:  # reported, and refused by the test
                    same[config] = f"{type(error).__name__}: {error}"
            found[name] = same[config]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
