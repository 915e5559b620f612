"""manyheads classify."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from manyheads.app.predict import Classifier, Guess
    from manyheads.errors import ManyheadsError

AT_ONCE = 32  # pictures classified together


def run(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Pictures or folders; without any, stdin's lines."),
    ] = None,
    model: Annotated[str, typer.Option(help="Name of a shipped model, or a folder.")] = "digits",
    top: Annotated[int, typer.Option(min=1, help="Classes shown a picture.")] = 5,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    csv: Annotated[
        bool, typer.Option("--csv", help="A table: path, then label and probability of each class.")
    ] = False,
) -> None:
    """Classify pictures: the likeliest classes of each, with probabilities.

    A picture that cannot be read is named on stderr, the others are classified, and the exit code
    is 1, or 2 if there is no such file. Of animated pictures the first frame counts.
    """
    from manyheads.app.predict import Classifier, load
    from manyheads.cli.show import other_use, warn
    from manyheads.errors import ManyheadsError, UsageError

    if json and csv:
        raise UsageError("--json and --csv are two forms of one answer: give one of them.")
    classifier = load(model)
    if not isinstance(classifier, Classifier):
        raise UsageError(f"{model} does not classify pictures: {other_use(classifier)}")
    top = min(top, len(classifier.labels))
    if csv:
        _print_row(["path", *(f"{what}{n + 1}" for n in range(top) for what in ("label", "p"))])
    waiting = _pictures(paths or [Path("-")])
    code = 0
    while chunk := list(islice(waiting, AT_ONCE)):
        for path, answer in _answers(classifier, chunk, top):
            if isinstance(answer, ManyheadsError):
                code = max(code, answer.exit_code)
                warn(str(answer))
                if json:
                    _print(path, None, str(answer))
            elif csv:
                cells = [str(cell) for label, p in answer for cell in (label, f"{p:.4f}")]
                _print_row([str(path), *cells])
            elif json:
                _print(path, answer, None)
            else:
                named = "  ".join(f"{label} {probability:.1%}" for label, probability in answer)
                print(f"{path}\t{named}", flush=True)
    if code:
        raise typer.Exit(code)


def _answers(
    classifier: "Classifier", pictures: "list[tuple[Path, ManyheadsError | None]]", top: int
) -> "Iterator[tuple[Path, list[Guess] | ManyheadsError]]":
    """Classify those pictures that can be read, together; in the order given."""
    import torch

    from manyheads.errors import ManyheadsError

    read: list[torch.Tensor | ManyheadsError] = []
    for path, fault in pictures:
        try:
            read.append(fault or classifier.pixels(path))
        except ManyheadsError as error:
            read.append(error)
    fine = [each for each in read if isinstance(each, torch.Tensor)]
    answers = iter(classifier.guesses(torch.stack(fine), top=top) if fine else [])
    for (path, _), each in zip(pictures, read, strict=True):
        yield path, next(answers) if isinstance(each, torch.Tensor) else each


def _print(path: Path, guesses: "list[Guess] | None", error: str | None) -> None:
    from manyheads.cli.show import print_json

    if guesses is None:
        print_json({"path": str(path), "error": error})
    else:
        print_json({"path": str(path), "classes": [guess._asdict() for guess in guesses]})


def _print_row(cells: list[str]) -> None:
    import csv
    import sys

    csv.writer(sys.stdout, lineterminator="\n").writerow(cells)
    sys.stdout.flush()


def _pictures(paths: list[Path]) -> "Iterator[tuple[Path, ManyheadsError | None]]":
    """Name the pictures; for a folder without any, say so in its place."""
    from manyheads.cli.texts import texts
    from manyheads.data.pictures import SUFFIXES
    from manyheads.errors import DataError

    for path in paths:
        if str(path) == "-":
            yield from ((Path(line), None) for line in texts(None) if line)
            continue
        if not path.is_dir():
            yield path, None
            continue
        inside = sorted(each for each in path.rglob("*") if each.suffix.lower() in SUFFIXES)
        if not inside:
            yield path, DataError(f"{path} has no pictures ({', '.join(sorted(SUFFIXES))}).")
        yield from ((each, None) for each in inside)
