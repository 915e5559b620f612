"""The target "web": graphs, tokenizer or preprocessing, and a page that runs them in a browser."""

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from manyheads.asks.decode_config import DecodeConfig
from manyheads.data.tokenizers.tagged_tokenizer import TaggedTokenizer
from manyheads.data.tokenizers.tokenizer import UNKNOWN, Tokenizer, byte_pieces
from manyheads.engines.engine import need
from manyheads.engines.exporter import Exported, ExportOptions, Target
from manyheads.engines.onnx.graph_files import write_graphs
from manyheads.engines.web.runtime import copy_runtime
from manyheads.errors import UsageError
from manyheads.project.folder import ModelFolder, write_json
from manyheads.project.registry import find_task

PAGE = Path(__file__).with_name("page")
MODEL = "model.json"
MODES, NO_CURVES = ("RGB", "L"), ("nearest",)
# Options of a search that the page does not have, and their neutral values.
NEUTRAL = {"no_repeat_ngram": 0, "min_length": 0, "sample": False}


def export(folder: ModelFolder, out: Path, options: ExportOptions) -> Exported:
    """Write the page into the empty folder `out`, which any web server of files can serve.

    Raises:
        MissingExtraError: onnx, onnxscript or onnxruntime is not installed.
        NotFoundError: onnxruntime-web is not there.
        UsageError: the page lacks something that the model needs, which is named.
    """
    versions = need(("onnx", "onnxscript", "onnxruntime"), extra="onnx")
    about = describe_for_page(folder)
    runtime = copy_runtime(out / "ort", options.runtime)
    made = write_graphs(folder, out)
    about["graphs"] = {
        name: {"file": graph.file, "inputs": graph.inputs, "limits": graph.limits}
        for name, graph in made.items()
    }
    write_json(out / MODEL, about)
    for each in PAGE.iterdir():
        shutil.copyfile(each, out / each.name)
    served = (
        "serve the folder to open it: python -m http.server --bind 127.0.0.1 --directory FOLDER"
    )
    return Exported(versions | {"onnxruntime-web": runtime}, (served,))


def describe_for_page(folder: ModelFolder) -> dict[str, Any]:
    """Describe a model for the page.

    Raises:
        UsageError: the page cannot run it.
    """
    about: dict[str, Any] = {"name": folder.name, "weights": folder.weights_hash}
    if folder.recipe.origin is not None:
        raise _refusal(folder, "the model was converted, and its tokenizer or preprocessing is not")
    predictor = find_task(folder.recipe.task).predictor
    if (image := predictor.image_input(folder)) is not None:
        if image.mode not in MODES:
            raise _refusal(folder, f"it reads images of mode {image.mode}, the page {MODES}")
        if image.interpolation in NO_CURVES:
            raise _refusal(folder, f"the page has no interpolation {image.interpolation!r}")
        about["preprocessing"] = asdict(image)
    kind = predictor.page
    if kind is None:
        raise _refusal(folder, f"the page has nothing for the task {folder.recipe.task!r}")
    about["kind"] = kind
    if (classes := predictor.output_classes(folder)) is not None:
        return about | {"classes": classes.names, "multi_label": classes.multi_label}
    recipe, config = cast(Any, folder.recipe), cast(Any, folder.recipe.config())
    about["ids"] = {name: getattr(config, name) for name in ("pad", "start", "end")}
    about["decode"] = _decode(folder, recipe.decode)
    source, target = cast(tuple[Any, Any], folder.tokenizers())
    if isinstance(source, TaggedTokenizer):
        raise _refusal(folder, "its texts begin with a tag, and those of the page do not")
    about["target"] = tokenizer_tables(folder, target)
    if image is not None:
        listed = [{"code": code, "token": token} for code, token in target.languages.items()]
        return about | {"languages": listed}
    about["source"] = None if source is target else tokenizer_tables(folder, source)
    return about | {"most": min(2 * recipe.train.max_length, config.token_limit)}


def _decode(folder: ModelFolder, decode: DecodeConfig) -> dict[str, Any]:
    """Options of the greedy search; those that the page would ignore are refused."""
    for name, neutral in NEUTRAL.items():
        if getattr(decode, name) != neutral:
            raise _refusal(folder, f"decode.{name} is {getattr(decode, name)}, and the page has no")
    kept = ("banned", "forced_end", "max_length", "max_loop")
    return {name: getattr(decode, name) for name in kept}


def tokenizer_tables(folder: ModelFolder, tokenizer: Any) -> dict[str, Any]:
    """Write a unigram model as lists: texts of the pieces, and scores of those that are text."""
    recipe: Any = folder.recipe
    if not isinstance(tokenizer, Tokenizer) or recipe.tokenizer.kind != "unigram":
        raise _refusal(folder, "its tokenizer is no unigram model; tokenizer.kind is for training")
    count = len(tokenizer)
    bytes_ = {byte: token for token, byte in byte_pieces(tokenizer)}
    special = {*range(UNKNOWN + 1), *tokenizer.languages.values(), *bytes_.values()}
    return {
        "pieces": [tokenizer.piece(token) for token in range(count)],
        "scores": [None if token in special else tokenizer.score(token) for token in range(count)],
        "bytes": [bytes_[byte] for byte in range(256)],
        "skipped": sorted(tokenizer.languages.values()),
        "first": UNKNOWN + 1,
    }


def _refusal(folder: ModelFolder, why: str) -> UsageError:
    return UsageError(
        f"{folder.name} cannot be exported to a page: {why}. The target onnx writes its graphs."
    )


# ONNX Runtime runs the same graphs; the page is compared with Python by the tests.
EXPORTER = Target("web", "onnx", ("float32",), export, standalone=True, takes=("runtime",))
