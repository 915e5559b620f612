"""manyheads evaluate."""

from pathlib import Path

from manyheads.asks.evaluate_request import EvaluateRequest
from manyheads.asks.load_options import LoadOptions


def run(
    request: EvaluateRequest,
    load: LoadOptions,
    name: str | None = None,
    model: str | None = None,
    plots: Path | None = None,
    json: bool = False,
) -> None:
    """Measure a model; log the result in its folder, unless it came with the package."""
    from manyheads.asks.classify_request import ClassifyRequest
    from manyheads.cli.printed_answers import print_evaluation, warn
    from manyheads.cli.terminal import waiting
    from manyheads.errors import UsageError
    from manyheads.measure.outputs import ANSWERS, FILE, PAGE
    from manyheads.measure.stored_model import measure
    from manyheads.predict.base_predictor import answers
    from manyheads.predict.load import load as load_model
    from manyheads.project.folder import own_files
    from manyheads.project.paths import make_room
    from manyheads.recipe_data.named_splits import inputs_of
    from manyheads.tasks.classify.evaluation import PLOTS, draw

    if name is not None and model is not None:
        raise UsageError(f"MODEL is {name} and --model {model}: give one of them.")
    model = name or model or "date-en-ko"
    predictor = load_model(model, **dict(load))
    if plots is not None:
        folder = predictor.folder
        if not (answers(predictor, ClassifyRequest) and predictor.output_classes(folder)):
            raise UsageError(f"--plots is for classifiers, and {model} is none: leave it out.")
        inputs = [*own_files(folder.path), *inputs_of(folder.recipe.data, request.data)]
        for each in PLOTS:
            make_room(plots / each, *inputs)
    with waiting(f"measuring {model}"):
        line = measure(predictor, request)
    print_evaluation(line, predictor.folder.path, as_json=json)
    if plots is not None:
        for path in draw(line, plots):
            warn(f"wrote {path}")
    if request.outputs is not None:
        warn(f"wrote {request.outputs / PAGE}, {FILE} and {ANSWERS}")
    if predictor.folder.shipped:
        warn(f"{predictor.folder.name} came with the package: nothing was written to its folder.")
