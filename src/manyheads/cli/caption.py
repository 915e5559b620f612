"""manyheads caption."""

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from manyheads.cli.images import AT_ONCE, answers, images
from manyheads.cli.options import Device, Engine, Sample, Seed, Temperature, Threads, TopK, TopP

SEARCH, ANSWERS = "Search", "Answers"  # panels of the help


def run(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Images or folders; without any, stdin's lines."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Shipped model, folder, or hf:USER/MODEL.")
    ] = "emoji-caption",
    language: Annotated[
        str | None,
        typer.Option(help="Language of the text, such as ko; the model's first by default."),
    ] = None,
    n_best: Annotated[
        int, typer.Option(min=1, rich_help_panel=ANSWERS, help="Number of texts per image.")
    ] = 1,
    json: Annotated[
        bool, typer.Option("--json", rich_help_panel=ANSWERS, help="One JSON object a line.")
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            rich_help_panel=ANSWERS,
            help="In JSON: the probability of each token.",
        ),
    ] = False,
    beam: Annotated[
        int | None,
        typer.Option(
            min=1,
            rich_help_panel=SEARCH,
            help="Beam size; 1 is greedy search. By default the model's own.",
        ),
    ] = None,
    sample: Sample = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = 1,
    engine: Engine = "torch",
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Write the text of images: what they show, or what is printed on them.

    One answer a line, in order. An image that cannot be read is named on stderr, its line is empty,
    and the exit code is 1, or 2 if there is no such file.
    """
    from manyheads.app.load import load_for
    from manyheads.app.predictors.text_predictor import one_line
    from manyheads.app.requests import CaptionAnswer, CaptionRequest
    from manyheads.cli.show import print_json, warn, warn_of
    from manyheads.errors import UsageError

    if probabilities and not json:
        raise UsageError("--probabilities are told in JSON: add --json.")
    request = CaptionRequest(
        images=(),
        language=language,
        n_best=n_best,
        beams=beam,
        sample=sample,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        probabilities=probabilities,
    )
    captioner = load_for(
        CaptionRequest,
        model,
        verb="write texts for images",
        engine=engine,
        device=device,
        threads=threads,
    )

    def ask(images: list[Path]) -> list[CaptionAnswer]:
        return captioner.answer(request.with_inputs(images))

    code = 0
    waiting = images(paths or [Path("-")])
    while chunk := list(islice(waiting, AT_ONCE)):
        for answer in answers(chunk, ask, CaptionAnswer):
            if answer.error is not None:
                code = max(code, 1 if Path(answer.path).exists() else 2)
                warn(answer.error)
            if json:
                print_json(answer.to_json())
            else:
                for each in answer.n_best or ():
                    line = one_line(each.text)
                    print(line if n_best == 1 else f"{each.score:.4f}\t{line}", flush=True)
                if answer.n_best is None:
                    print(flush=True)
            warn_of(answer.path, answer.notes)
    if code:
        raise typer.Exit(code)
