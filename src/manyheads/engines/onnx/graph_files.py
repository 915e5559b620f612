"""A model folder's graphs as files: one .onnx each, and graphs.json, which describes them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from manyheads.engines.onnx.graph_tracing import OPSET, trace
from manyheads.errors import FolderError, UsageError
from manyheads.models.exported_graphs import Graph
from manyheads.project.folder import ModelFolder, read_versioned, validated, write_json
from manyheads.project.recipe_limits import short
from manyheads.project.registry import find_task
from manyheads.strict_json import dumps

GRAPHS = "graphs.json"
FORMAT = 1


@dataclass(frozen=True)
class GraphFile:
    """A graph that was written."""

    file: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    limits: Mapping[str, int]  # of open axes: the longest


def write_graphs(folder: ModelFolder, out: Path) -> dict[str, GraphFile]:
    """Write all graphs of a model, and graphs.json.

    Raises:
        UsageError: the model has a part that is no graph.
    """
    metadata = describe(folder)
    made = {}
    for graph in graphs(folder):
        name = f"{graph.name}.onnx"
        said = {"manyheads.graph": graph.name, "manyheads.limits": dumps(dict(graph.limits))}
        trace(graph, out / name, metadata | said)
        inputs = [each.name for each in graph.inputs]
        made[graph.name] = GraphFile(name, inputs, [*graph.outputs], dict(graph.limits))
    write_listing(out, made)
    return made


def write_listing(out: Path, made: Mapping[str, GraphFile]) -> None:
    """Write graphs.json."""
    listed = {name: asdict(each) for name, each in made.items()}
    write_json(out / GRAPHS, {"format_version": FORMAT, "opset": OPSET, "graphs": listed})


def read_graphs(path: Path) -> dict[str, GraphFile]:
    """Read graphs.json.

    Raises:
        FolderError: it is damaged, or of a later version.
    """
    file, again = path / GRAPHS, "Export the model again."
    stored = read_versioned(file, FORMAT, again).get("graphs")
    found = validated(dict[str, GraphFile], stored, file, again, "graphs")
    there = {each.name for each in path.iterdir()}  # with hashes: `engine_files`
    if wrong := [graph.file for graph in found.values() if graph.file not in there]:
        raise FolderError(f"{file}: {short(wrong[0])} is not a file beside it.")
    return found


def graphs(folder: ModelFolder) -> Sequence[Graph]:
    """Build the modules to trace, with tables of positions as long as the model may need.

    Raises:
        UsageError: the model has a part that is no graph.
    """
    model = folder.model()
    own = folder.recipe.config()
    config = own.with_positions(find_task(folder.recipe.task).predictor.positions(folder.recipe))
    if config is not own:
        longer = config.build()  # tables that are formulas, and the same weights
        longer.load_state_dict(model.state_dict())
        model = longer.eval()
    found = config.graphs(model)
    if not found:
        raise UsageError(
            f"{folder.name} cannot be exported: {type(model).__name__} has no graph in which the "
            "number of inputs and their length stay open. Recurrent layers have none: torch writes "
            "them step by step, for one length."
        )
    return found


def describe(folder: ModelFolder) -> dict[str, str]:
    """Say in a graph's own metadata what its inputs and outputs mean: texts and JSON."""
    recipe = folder.recipe
    said = {
        "manyheads.model": folder.name,
        "manyheads.task": recipe.task,
        "manyheads.preset": str(recipe.model["preset"]),
        "manyheads.weights": folder.weights_hash,
    }
    predictor = find_task(recipe.task).predictor
    if (image := predictor.image_input(folder)) is not None:
        said["manyheads.preprocessing"] = dumps(asdict(image))
        said["manyheads.input"] = (
            "images (image, channel, height, width), float32: fitted to height and width as "
            "resize_mode, crop and interpolation say, then (value / 255 - mean) / std"
        )
    if (classes := predictor.output_classes(folder)) is not None:
        said["manyheads.classes"] = dumps(classes.names)
        said["manyheads.output"] = "logits (image, class): " + (
            "a sigmoid each" if classes.multi_label else "softmax over classes"
        )
    return said
