"""manyheads evaluate."""

from pathlib import Path
from typing import Annotated

import typer

from manyheads.cli.options import Device, Engine, Final, Metrics, Remote, Split, Threads


def run(
    model: Annotated[
        str, typer.Option(help="Shipped model, folder, or hf:USER/MODEL.")
    ] = "date-en-ko",
    data: Annotated[
        str | None,
        typer.Option(
            help="Other data than the recipe's: two files NAME.en, NAME.de; .tsv; images."
        ),
    ] = None,
    remote: Remote = False,
    split: Split = "valid",
    final: Final = False,
    metric: Metrics = None,
    by_length: Annotated[
        bool, typer.Option("--by-length", help="Scores by the length of the source.")
    ] = False,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="The first metric by group: a column of the data, such as 3."
        ),
    ] = None,
    references: Annotated[
        str | None,
        typer.Option(
            metavar="TSV", help="Further right answers: in each line a source and its translations."
        ),
    ] = None,
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
    among: Annotated[
        str | None,
        typer.Option(
            metavar="IMAGES", help="Matchers: images to search among, besides those measured."
        ),
    ] = None,
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
    engine: Engine = "torch",
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Measure a model and log the result in its folder, unless the model came with the package."""
    from manyheads.app.data.sources import inputs_of
    from manyheads.app.evaluate.evaluate import measure
    from manyheads.app.evaluate.image_metrics import PLOTS, draw
    from manyheads.app.load import load
    from manyheads.app.predictors.predictor import answers
    from manyheads.app.project.folder import own_files
    from manyheads.app.project.paths import make_room
    from manyheads.app.requests import ClassifyRequest, EvaluateRequest
    from manyheads.cli.show import print_evaluation, warn
    from manyheads.errors import UsageError

    request = EvaluateRequest(
        data=data,
        remote=remote,
        split=split,
        final=final,
        metrics=tuple(metric or ()),
        by_length=by_length,
        among=among,
        group=group,
        references=references,
        timing=timing,
        outputs=outputs,
        alignment=alignment,
    )
    predictor = load(model, engine=engine, device=device, threads=threads)
    draws = answers(predictor, ClassifyRequest) and predictor.output_classes(predictor.folder)
    if plots is not None and not draws:
        raise UsageError(f"--plots is for classifiers, and {model} is none: leave it out.")
    if plots is not None:
        for name in PLOTS:
            own = own_files(predictor.folder.path)
            make_room(plots / name, *own, *inputs_of(predictor.folder.recipe.data, data))
    line = measure(predictor, request)
    print_evaluation(line, predictor.folder.path, as_json=json)
    if plots is not None:
        for path in draw(line, plots):
            warn(f"wrote {path}")
    if predictor.folder.shipped:
        warn(f"{predictor.folder.name} came with the package: nothing was written to its folder.")
