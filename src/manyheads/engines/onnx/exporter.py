"""The target "onnx": graphs for any runtime, which describe themselves."""

from collections.abc import Sequence
from pathlib import Path

from manyheads.engines.engine import need
from manyheads.engines.exporter import Exported, ExportOptions, Target
from manyheads.engines.onnx.graph_files import GRAPHS, graphs, write_graphs
from manyheads.errors import UsageError
from manyheads.project.folder import ModelFolder

PACKAGES = ("onnx", "onnxscript", "onnxruntime")


def export(folder: ModelFolder, out: Path, options: ExportOptions) -> Exported:
    """Write each graph of a model into the empty folder `out`, as an .onnx file.

    Raises:
        MissingExtraError: onnx, onnxscript or onnxruntime is not installed.
        UsageError: a part of the model is no graph, or one file cannot hold the model.
    """
    versions = need(PACKAGES, extra="onnx")
    if options.one_file:  # a model that is several graphs is refused before they are traced
        _refuse_several(folder, [f"{each.name}.onnx" for each in graphs(folder)])
    made = write_graphs(folder, out)
    if options.one_file:  # of a large model, the weights lie beside the graph
        _refuse_several(folder, [each.name for each in out.iterdir() if each.name != GRAPHS])
    said = ", ".join(f"{each.file} ({', '.join(each.inputs[:2])})" for each in made.values())
    return Exported(versions, (f"graphs: {said}",) if len(made) > 1 else ())


def _refuse_several(folder: ModelFolder, files: Sequence[str]) -> None:
    if len(files) > 1:
        raise UsageError(
            f"{folder.name} is {len(files)} files, {', '.join(sorted(files))}: give a folder "
            "as `out`, or leave it out."
        )


EXPORTER = Target("onnx", "onnx", ("float32",), export, suffix=".onnx")
