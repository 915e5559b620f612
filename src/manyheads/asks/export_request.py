"""Export of a model to an engine."""

from typing import Annotated, Self

from pydantic import model_validator

from manyheads.asks.evaluate_request import Remote
from manyheads.asks.option import Option
from manyheads.asks.request import AnyPath, Request, Several
from manyheads.bounded_numbers import Count


class ComparisonInputs(Request):
    """What an engine is compared on: validation data, other data, or texts without answers."""

    data: Annotated[
        str | None, Option("Compare on these data instead of the recipe's validation data.")
    ] = None
    remote: Remote = False
    texts: Annotated[  # without right answers, so no metric
        Several[str], Option("Compare on this text instead of data. Repeatable.", name="--text")
    ] = ()
    limit: Annotated[Count, Option("Number of inputs to compare, from all over the data.")] = 500

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.data is not None and self.texts:
            raise ValueError("`data` or `texts`, not both")
        return self


class ParityRequest(ComparisonInputs):
    """Compare an engine with torch."""

    # Numbers of examples of the validation data that the export was made with, such as those that
    # it was calibrated on: they are not compared.
    left_out: tuple[int, ...] = ()


class ExportRequest(ComparisonInputs):
    """Write a stored model in the format of an engine, if it then answers as on torch."""

    to: Annotated[str, Option("What to export to: ctranslate2, onnx, openvino, web.")]
    quantization: Annotated[
        str | None,
        Option(
            "Type of the numbers, float32 by default: bfloat16, int8; of openvino also auto, "
            "which measures."
        ),
    ] = None
    calibrate: Annotated[
        AnyPath | None, Option("Of image models in int8: images to calibrate on.", metavar="FOLDER")
    ] = None
    runtime: Annotated[
        AnyPath | None,
        Option(
            "Of web: the unpacked npm package onnxruntime-web; otherwise npm gets it.",
            metavar="FOLDER",
        ),
    ] = None
    out: Annotated[
        AnyPath | None,
        Option(
            "Folder to write a copy of the model to, with the engine in it; a file, where the "
            "target is one. By default the model's own folder; of a shipped model runs/MODEL."
        ),
    ] = None
    force: Annotated[
        bool, Option("Keep it although it does not answer as torch; it is marked.")
    ] = False
