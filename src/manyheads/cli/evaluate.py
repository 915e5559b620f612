"""manyheads evaluate."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from manyheads.cli.options import Final, Metrics, Split


def run(
    model: Annotated[
        str, typer.Option(help="Name of a shipped model, or a folder.")
    ] = "date-en-ko",
    data: Annotated[
        str | None,
        typer.Option(
            help="Other data than the recipe's: two files NAME.en, NAME.de; .tsv; pictures."
        ),
    ] = None,
    split: Split = "valid",
    final: Final = False,
    metric: Metrics = None,
    by_length: Annotated[
        bool, typer.Option("--by-length", help="Scores by the length of the source.")
    ] = False,
    timing: Annotated[
        bool, typer.Option("--timing", help="Speed, all together and one at a time.")
    ] = False,
    alignment: Annotated[
        bool,
        typer.Option(
            "--alignment",
            help="How well attention says where words come from; on valid, choose the head.",
        ),
    ] = False,
    outputs: Annotated[
        Path | None, typer.Option(help="Write the translations to this file, one a line.")
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Draw a classifier's reliability.png and confusion.png there."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a model and log the result in its folder, unless the model came with the package."""
    from manyheads.app.evaluate import evaluate, is_shipped
    from manyheads.app.pictures import draw
    from manyheads.app.predict import Classifier, load
    from manyheads.app.translations import Report, metrics
    from manyheads.cli.show import other_use, print_evaluation, warn
    from manyheads.errors import UsageError

    report = Report(
        metrics=metrics(metric or []),
        by_length=by_length,
        timing=timing,
        outputs=outputs,
        alignment=alignment,
    )
    predictor = load(model)
    if plots is not None and not isinstance(predictor, Classifier):
        raise UsageError(f"--plots is for classifiers: {other_use(predictor)}")
    line = evaluate(predictor, data=data, split=split, final=final, report=report)
    print_evaluation(line, predictor.folder.path, as_json=json)
    if plots is not None:
        for path in draw(line, plots):
            print(f"wrote {path}", file=sys.stderr)
    if is_shipped(predictor.folder):
        warn(f"{predictor.folder.name} came with the package: nothing was written to its folder.")
