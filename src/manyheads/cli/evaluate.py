"""manyheads evaluate."""

from typing import Annotated

import typer


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
    split: Annotated[str, typer.Option(help="Split of the recipe: train, valid, test.")] = "valid",
    final: Annotated[
        bool, typer.Option("--final", help="Measure a test split: once, after all choices.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a model and log the result in its folder."""
    from manyheads.app.evaluate import evaluate
    from manyheads.app.predict import load
    from manyheads.cli.show import print_evaluation

    predictor = load(model)
    line = evaluate(predictor, data=data, split=split, final=final)
    print_evaluation(line, predictor.folder.path, as_json=json)
