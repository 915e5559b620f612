"""manyheads classify."""

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from manyheads.cli.images import AT_ONCE, answers, images
from manyheads.cli.options import Device, Engine, Threads
from manyheads.cli.terminal import visible_name


def run(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Images or folders; without any, stdin's lines."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Shipped model, folder, or hf:USER/MODEL; by default digits, with --labels "
            "emoji-search."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of classes per image.")] = 5,
    labels: Annotated[
        str | None,
        typer.Option(
            help="Classes in words, separated by commas, for a model of images and texts; such as "
            "cat,dog,house."
        ),
    ] = None,
    template: Annotated[
        list[str] | None,
        typer.Option(help='With --labels: sentence around a class, "a photo of {}". Repeatable.'),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    csv: Annotated[
        bool, typer.Option("--csv", help="A table: path, then label and probability of each class.")
    ] = False,
    engine: Engine = "torch",
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Classify images: the most probable classes of each, with probabilities.

    An image that cannot be read is named on stderr, the others are classified, and the exit code
    is 1, or 2 if there is no such file. Of animated images the first frame counts.
    """
    from manyheads.app.load import load_for
    from manyheads.app.requests import ClassifyAnswer, ClassifyRequest
    from manyheads.cli.show import print_json, warn, warn_of
    from manyheads.errors import UsageError

    if json and csv:
        raise UsageError("--json and --csv are two forms of one answer: give one of them.")
    request = ClassifyRequest(
        images=(),
        top=top,
        labels=tuple(each.strip() for each in labels.split(",")) if labels else (),
        templates=tuple(template or ()),
    )
    classifier = load_for(
        ClassifyRequest,
        model or ("emoji-search" if labels else "digits"),
        verb="classify images",
        engine=engine,
        device=device,
        threads=threads,
    )
    if csv:
        own = classifier.output_classes(classifier.folder)
        count = len(request.labels) or (top if own is None else len(own.names))
        shown = range(1, min(top, count) + 1)
        _print_row(["path", *(f"{what}{n}" for n in shown for what in ("label", "p"))])

    def ask(images: list[Path]) -> list[ClassifyAnswer]:
        return classifier.answer(request.with_inputs(images))

    code = 0
    waiting = images(paths or [Path("-")])
    while chunk := list(islice(waiting, AT_ONCE)):
        for answer in answers(chunk, ask, ClassifyAnswer):
            if answer.error is not None:
                code = max(code, 1 if Path(answer.path).exists() else 2)
                warn(answer.error)
            if json:
                print_json(answer.to_json())
            elif answer.classes is not None and csv:
                cells = [(each.label, f"{each.probability:.4f}") for each in answer.classes]
                _print_row([answer.path, *(cell for pair in cells for cell in pair)])
            elif answer.classes is not None:
                named = (
                    f"{visible_name(each.label)} {each.probability:.1%}" for each in answer.classes
                )
                print(f"{visible_name(answer.path)}\t{'  '.join(named)}", flush=True)
            warn_of(answer.path, answer.notes)
    if code:
        raise typer.Exit(code)


def _print_row(cells: list[str]) -> None:
    import csv
    import sys

    csv.writer(sys.stdout, lineterminator="\n").writerow(cells)
    sys.stdout.flush()
