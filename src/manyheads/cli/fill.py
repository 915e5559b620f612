"""manyheads fill."""

from typing import Annotated

import typer

from manyheads.cli.options import Device, Engine, Threads


def run(
    model: Annotated[str, typer.Option(help="Folder of a model trained to fill blanks.")],
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT", help='Texts with <mask>, as "a <mask>."; or the lines of stdin.'
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of proposals per <mask>.")] = 5,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    engine: Engine = "torch",
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Fill each <mask> of texts: the most probable tokens, with probabilities."""
    from manyheads.app.load import load_for
    from manyheads.app.predictors.stream import stream
    from manyheads.app.predictors.text_predictor import one_line
    from manyheads.app.requests import FillRequest
    from manyheads.cli.show import print_json, warn_of
    from manyheads.cli.texts import texts

    request = FillRequest(texts=(), top=top)
    filler = load_for(
        FillRequest, model, verb="fill blanks", engine=engine, device=device, threads=threads
    )
    answers = stream(filler.answer, request, texts(given), 1)
    for number, answer in enumerate(answers, 1):
        warn_of(number, answer.notes)
        if json:
            print_json(answer.to_json())
            continue
        for number, blank in enumerate(answer.blanks, 1):
            if len(answer.blanks) > 1:
                print(f"blank {number}")
            for proposal in blank:
                print(f"{proposal.probability:6.1%}  {one_line(proposal.text)}", flush=True)
