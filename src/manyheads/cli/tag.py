"""manyheads tag."""

from typing import Annotated

import typer

from manyheads.cli.options import Device, Engine, Threads


def run(
    model: Annotated[str, typer.Option(help="Folder of a model trained to tag.")],
    given: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts; without any, the lines of stdin."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    engine: Engine = "torch",
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Put spaces into Korean texts; spaces that are there are ignored."""
    from manyheads.app.load import load_for
    from manyheads.app.predictors.stream import stream
    from manyheads.app.requests import TagRequest
    from manyheads.cli.show import print_json, warn_of
    from manyheads.cli.texts import texts

    spacer = load_for(
        TagRequest, model, verb="space texts", engine=engine, device=device, threads=threads
    )
    answers = stream(spacer.answer, TagRequest(texts=()), texts(given), 1)
    for number, answer in enumerate(answers, 1):
        warn_of(number, answer.notes)
        if json:
            print_json(answer.to_json())
        else:
            print(answer.text, flush=True)
