"""manyheads read."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from manyheads.cli.images import AT_ONCE, answers, images
from manyheads.cli.options import Device, Engine, Threads
from manyheads.cli.terminal import visible_name

if TYPE_CHECKING:
    from manyheads.app.requests import ReadAnswer


def run(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Images or folders; without any, stdin's lines."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Shipped model, folder, or hf:USER/MODEL.")
    ] = "read-ko",
    to: Annotated[
        str | None, typer.Option(help="Language to translate the text into, such as en.")
    ] = None,
    translator: Annotated[
        str | None,
        typer.Option(
            help="Name or folder of a translator; the shipped one for these languages by default."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    engine: Engine = "torch",
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Read the printed text in images, line by line, and translate it.

    With --to the translation follows behind an empty line. Several images are told apart by their
    names. An image that cannot be read is named on stderr, and the exit code is 1, or 2 if there is
    no such file.
    """
    from manyheads.app.load import load_for
    from manyheads.app.reading import ReadingTranslator
    from manyheads.app.requests import CaptionRequest, ReadAnswer, ReadRequest
    from manyheads.cli.show import print_json, warn, warn_of

    reader = load_for(
        CaptionRequest, model, verb="read images", engine=engine, device=device, threads=threads
    )
    both = ReadingTranslator(reader, ReadRequest(images=(), to=to, translator=translator))
    code, number = 0, 0
    waiting = images(paths or [Path("-")])
    while chunk := list(islice(waiting, AT_ONCE)):
        several = number > 0 or len(chunk) > 1
        for answer in answers(chunk, both.answer, ReadAnswer):
            number += 1
            if answer.error is not None:
                code = max(code, 1 if Path(answer.path).exists() else 2)
                warn(answer.error)
            if json:
                print_json(answer.to_json())
            elif answer.text is not None:
                _print(answer, named=several)
            warn_of(answer.path, answer.notes)
    if code:
        raise typer.Exit(code)


def _print(answer: "ReadAnswer", *, named: bool) -> None:
    if named:
        print(f"{visible_name(answer.path)}:")
    print(answer.text)
    if answer.translation is not None:
        print(f"\n{answer.translation}")
    print(end="\n" if named else "", flush=True)
