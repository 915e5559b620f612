"""The target "openvino": image models, through ONNX; in int8 calibrated on images."""

import logging
import statistics
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from manyheads.data.even_sample import evenly_spaced
from manyheads.data.images.image_set import Preprocessing, read_unlabelled
from manyheads.engines.engine import need
from manyheads.engines.exporter import Exported, ExportOptions, Target
from manyheads.engines.onnx.graph_files import write_graphs, write_listing
from manyheads.engines.openvino.engine import PRECISION, OpenVinoSession, openvino
from manyheads.errors import ManyheadsError, UsageError
from manyheads.project.folder import ModelFolder, write_json
from manyheads.project.registry import find_task

CALIBRATION = 300  # images at most
BATCH, RUNS = 8, 7  # of the measurement that chooses between float32 and bfloat16
GAIN = 1.05  # times as fast as float32 must bfloat16 be to be chosen


def export(folder: ModelFolder, out: Path, options: ExportOptions) -> Exported:
    """Write each graph of an image model into the empty folder `out`, in OpenVINO's format.

    Raises:
        MissingExtraError: OpenVINO or, for int8, NNCF is not installed.
        UsageError: the model reads no images of one size; there are no images to calibrate on.
    """
    packages = ["openvino", "onnx", "onnxscript", *["nncf"] * (options.quantization == "int8")]
    versions = need(packages, extra="openvino")
    preprocessing = find_task(folder.recipe.task).predictor.image_input(folder)
    if preprocessing is None:
        raise UsageError(
            f"{folder.name} does not look at images of one size: for it there are the targets "
            "ctranslate2 and onnx."
        )
    int8 = options.quantization == "int8"
    if options.calibration is not None and not int8:
        raise UsageError("Only int8 is calibrated: leave out `calibrate`, or ask for int8.")
    images, used = _calibration(preprocessing, options) if int8 else (None, ())
    made = write_graphs(folder, out)
    if "decoder" in made:
        raise UsageError(
            f"{folder.name} writes texts, and the target openvino is for models that classify "
            "or compare images: take the target onnx."
        )
    remarks = []
    precision = "bfloat16" if options.quantization == "bfloat16" else "float32"
    for name, graph in made.items():
        model = openvino().Core().read_model(str(out / graph.file))
        of_images = "images" in graph.inputs
        if of_images and images is not None:
            model = quantized(model, images)
            others = " of the validation data, measured on the others" if used else ""
            remarks.append(f"{name}: int8, calibrated on {len(images)} images{others}")
        elif images is not None:
            remarks.append(f"{name}: float32, for only images are calibrated on")
        if of_images and options.quantization in ("auto", "int8"):
            precision, said = faster(model, preprocessing)
            remarks.append(said)
        (out / graph.file).unlink()
        for weights in out.glob("*.data"):
            weights.unlink()
        made[name] = replace(graph, file=f"{name}.xml")
        openvino().save_model(model, str(out / f"{name}.xml"), compress_to_fp16=False)
    write_listing(out, made)
    write_json(out / PRECISION, precision)
    return Exported(versions, tuple(remarks), used=used)


def _calibration(
    preprocessing: Preprocessing, options: ExportOptions
) -> tuple[list[Tensor], tuple[int, ...]]:
    """Read images to calibrate on, normalised, one a batch.

    Returns:
        The images, and the numbers of those of the validation data: at most half of these, so that
        the gate measures on others.
    """
    given = options.calibration
    try:
        images = options.validation_images() if given is None else read_unlabelled(given)
    except ManyheadsError as error:
        raise UsageError(
            f"int8 is calibrated on images, and there are none: {error} Give a folder of images as "
            "`calibrate`, such as those that the model was trained for."
        ) from error
    most = min(CALIBRATION, len(images) if given is not None else len(images) // 2)
    if not most:
        raise UsageError(
            "int8 is calibrated on one half of the validation images and measured on the other, "
            f"and there are {len(images)}: give a folder of images as `calibrate`."
        )
    chosen = evenly_spaced(len(images), most).tolist()
    found = [
        preprocessing.normalise(torch.from_numpy(images.pixels(n, preprocessing).copy())[None])
        for n in chosen
    ]
    return found, (tuple(chosen) if given is None else ())


def quantized(model: Any, images: Sequence[Tensor]) -> Any:
    """Quantize weights and activations to int8, with the ranges that the images show."""
    library = openvino("nncf")
    library.set_log_level(logging.ERROR)
    with redirect_stdout(StringIO()):  # progress bars
        return library.quantize(
            model,
            library.Dataset([each.numpy() for each in images]),
            preset=library.QuantizationPreset.MIXED,
            model_type=library.ModelType.TRANSFORMER,
            subset_size=len(images),
        )


def faster(model: Any, image: Preprocessing) -> tuple[str, str]:
    """Measure both precisions of what is not int8; return the one to take, and what was said."""
    batch = torch.zeros(BATCH, image.channels, image.height, image.width)
    threads = torch.get_num_threads()
    sessions = {name: OpenVinoSession(model, name, threads) for name in ("float32", "bfloat16")}
    times: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(RUNS):
        for name, session in sessions.items():
            began = time.perf_counter()
            session([batch])
            times[name].append(time.perf_counter() - began)
    usual, half = (statistics.median(times[name][1:]) for name in ("float32", "bfloat16"))
    gain = usual / half
    chosen = "bfloat16" if gain >= GAIN else "float32"
    said = f"bfloat16 is {gain:.2f} times as fast as float32 for {BATCH} images"
    return chosen, f"{said}: {chosen} was taken"


QUANTIZATIONS = ("float32", "bfloat16", "auto", "int8")
EXPORTER = Target("openvino", "openvino", QUANTIZATIONS, export, takes=("calibrate",))
