"""manyheads translate."""

import sys
from collections.abc import Iterator
from typing import Annotated

import typer


def run(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts; without any, the lines of stdin."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Name of a shipped model, or a folder.")
    ] = "date-en-ko",
    beam: Annotated[
        int | None,
        typer.Option(min=1, help="Beams of the search, 1 is greedy; the model's own if not given."),
    ] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Translations a text.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Translate texts: one answer a line, in order."""
    from manyheads.app.predict import LINES, Translator, load
    from manyheads.cli.show import print_json, warn
    from manyheads.errors import UsageError

    translator = load(model)
    if not isinstance(translator, Translator):
        raise UsageError(f"{model} classifies pictures: use `manyheads classify`.")
    waiting: list[str] = []

    def remember(lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            waiting.append(line)
            yield line

    source = _arguments(texts) if texts else _stdin()
    answers = translator.stream(
        remember(source),
        beams=beam,
        n_best=n_best,
        lines=1 if not texts and sys.stdin.isatty() else LINES,  # a person waits for each answer
    )
    for number, best in enumerate(answers, 1):
        text = waiting.pop(0)
        if json:
            found = [
                {"text": each.text, "score": each.score, "finished": each.finished} for each in best
            ]
            print_json({"source": text, "translation": best[0].text, "n_best": found})
        else:
            for each in best:
                print(each.text if n_best == 1 else f"{each.score:.4f}\t{each.text}", flush=True)
        if not best[0].finished:
            warn(f"text {number}: the translation was cut off at the length limit.")


def _arguments(texts: list[str]) -> Iterator[str]:
    """Refuse what the shell passed on in another encoding."""
    from manyheads.errors import DataError

    for number, text in enumerate(texts, 1):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(f"text {number}, {text!r}, is not valid UTF-8.") from error
        yield text


def _stdin() -> Iterator[str]:
    r"""Read lines that end at \n and nowhere else."""
    from manyheads.errors import DataError

    if sys.stdin.isatty():
        print("One text a line; Ctrl-D ends.", file=sys.stderr)
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8").removesuffix("\n").removesuffix("\r")
            yield text.removeprefix("\ufeff") if number == 1 else text
        except UnicodeDecodeError as error:
            raise DataError(
                f"stdin, line {number}: byte {error.start + 1} is not valid UTF-8. "
                "Convert the input, for example with iconv."
            ) from error
