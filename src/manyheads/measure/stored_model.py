"""Measure a stored model, and log the result with it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.engines.engine import engine_name
from manyheads.errors import LOG, OutputError, UsageError
from manyheads.measure.outputs import check_folder, write_outputs
from manyheads.measure.score import ROWS, Line
from manyheads.predict.base_predictor import Predictor
from manyheads.predict.load import loaded
from manyheads.predict.task_pipeline import pipeline_of
from manyheads.project.card import write_card
from manyheads.project.folder import ModelFolder, append_evaluation, own_files
from manyheads.project.paths import allow
from manyheads.recipe_data.named_splits import inputs_of


def evaluate(model: str | Path | Predictor, **parameters: Any) -> Line:
    """Measure a model on a split of its recipe or on other data, and log the result in its folder.

    Args:
        model: the name of a shipped model, a model folder, or what `load` returned.
        parameters: those of `EvaluateRequest`, such as `split="train"` or `data="pairs.tsv"`; of
            a model that is not loaded yet those of `load`, too.

    Returns:
        The logged line: data, split, registered name, metric, value, signature, final, ...

    Raises:
        UsageError: a test split without `final=True`; what this model cannot be measured by.
    """
    predictor, parameters = loaded(model, parameters)
    return measure(predictor, EvaluateRequest(**parameters))


def measure(predictor: Predictor, request: EvaluateRequest) -> Line:
    """Do what `evaluate` does, for a validated request."""
    folder = predictor.folder
    allow(request.data)
    if request.remote:
        allow(*dict(folder.recipe.data).values())
    pipeline = pipeline_of(folder.recipe)
    if request.outputs is not None:
        inputs = [*own_files(folder.path), *inputs_of(folder.recipe.data, request.data)]
        check_folder(request.outputs, inputs)
    with predictor.engine.running():
        line = pipeline.evaluate(predictor, request)
    rows = line.pop(ROWS, None)
    if request.outputs is not None:
        if rows is None:
            raise UsageError(
                f"{folder.name}: the task {pipeline.task!r} gives no rows: leave `outputs` out."
            )
        model = folder.name if folder.shipped else str(folder.path)
        write_outputs(request.outputs, model, rows, line, looks=pipeline.looks)
    if (name := engine_name(predictor.engine)) != "torch":
        line["engine"] = name
    return log(folder, line)


def log(folder: ModelFolder, line: Line) -> Line:
    """Date a measurement and log it with the model; a shipped model's folder stays as it is."""
    line["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    if not folder.shipped:
        try:
            append_evaluation(folder.path, line)
            write_card(folder)
        except OutputError as error:  # it may lie where users cannot write
            LOG.warning("The result was not logged with the model: %s", error)
    return line
