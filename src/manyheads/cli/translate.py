"""manyheads translate."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from manyheads.cli.options import Device, Engine, Sample, Seed, Temperature, Threads, TopK, TopP

if TYPE_CHECKING:
    from manyheads.app.predictors.predictor import Predictor
    from manyheads.app.requests import TranslateRequest

# Panels of the help.
SEARCH, ANSWERS, DOCUMENTS = "Search", "Answers", "Documents"


def run(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts; without any, the lines of stdin."),
    ] = None,
    model: Annotated[str, typer.Option(help="Shipped model, folder, or hf:USER/MODEL.")] = "en-de",
    file: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            rich_help_panel=DOCUMENTS,
            help="Document to translate, - for stdin; keeps lines, tags, numbers, ... Or a table: "
            "'folder/*.parquet'.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=DOCUMENTS,
            help="File to write the translation to; .parquet gets columns of sources and "
            "translations.",
        ),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=DOCUMENTS,
            help="Column of a .parquet table with the texts; by default the source language, "
            "text, or the only one.",
        ),
    ] = None,
    glossary: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=DOCUMENTS,
            help="Required translations: lines of term, tab, translation.",
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=DOCUMENTS,
            help="text, markdown, html, docx or xlsx; by default by the document's ending.",
        ),
    ] = None,
    n_best: Annotated[
        int, typer.Option(min=1, rich_help_panel=ANSWERS, help="Number of translations per input.")
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
    align: Annotated[
        bool,
        typer.Option(
            "--align",
            rich_help_panel=ANSWERS,
            help="In JSON: the source token that each output token comes from.",
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
    length_penalty: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=SEARCH, help="Above 1 favours long translations, below 1 short ones."
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            min=0,
            rich_help_panel=SEARCH,
            help="Cost of source text that was not attended to: 0.2, say.",
        ),
    ] = None,
    diverse: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=SEARCH,
            help="With --n-best: cost of a word that another translation has, such as 0.5.",
        ),
    ] = None,
    no_repeat_ngram: Annotated[
        int | None,
        typer.Option(
            min=0, rich_help_panel=SEARCH, help="Never repeat a sequence of this many tokens."
        ),
    ] = None,
    prefix: Annotated[
        str, typer.Option(rich_help_panel=SEARCH, help="Text that every translation begins with.")
    ] = "",
    recase: Annotated[
        bool | None,
        typer.Option(
            "--recase/--no-recase",
            rich_help_panel=SEARCH,
            help="Translate a text in capitals in sentence case, if the model knows no capitals; "
            "on by default.",
            show_default=False,
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
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=256,
            help="With --file: so many processes translate it. With --out too, one that was "
            "stopped goes on when the command is given again.",
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="With --file: a Ray cluster translates it, with --workers actors. local starts "
            "one here; auto or HOST:PORT name one that runs.",
        ),
    ] = None,
) -> None:
    """Translate texts: one answer a line, in order; or a document."""
    from manyheads.app.load import load_for
    from manyheads.app.predictors.stream import AT_A_TIME
    from manyheads.app.predictors.translator import Translator
    from manyheads.app.requests import TranslateRequest
    from manyheads.cli import bulk, documents
    from manyheads.cli.texts import texts as read
    from manyheads.errors import UsageError

    if (probabilities or align) and not json:
        raise UsageError("--probabilities and --align are told in JSON: add --json.")
    if out is not None and file is None:
        raise UsageError("--out is for the translation of a document: add --file.")
    if format is not None and file is None:
        raise UsageError("--format is of a document: add --file.")
    if (workers is not None or ray is not None) and file is None:
        raise UsageError("--workers and --ray divide a document: add --file.")
    if file is not None and texts:
        raise UsageError("--file or texts, not both.")
    if (file or glossary) and (n_best > 1 or prefix or probabilities or align):
        raise UsageError(
            "--file and --glossary give one translation: leave out --n-best, --prefix, "
            "--probabilities and --align."
        )
    request = TranslateRequest(
        texts=(),
        n_best=n_best,
        beams=beam,
        sample=sample,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        length_penalty=length_penalty,
        coverage_penalty=coverage,
        diversity=diverse,
        no_repeat_ngram=no_repeat_ngram,
        recase=recase,
        prefix=prefix,
        probabilities=probabilities,
        align=align,
    )
    translator = load_for(
        TranslateRequest, model, verb="translate", engine=engine, device=device, threads=threads
    )
    at_a_time = AT_A_TIME
    if not texts and sys.stdin.isatty():
        at_a_time = 1  # a person waits for each answer
    if not isinstance(translator, Translator):  # a predictor from outside the package
        if file or glossary:
            raise UsageError(f"{model} translates texts only: leave out --file and --glossary.")
        _translate(translator, request, read(texts), at_a_time, json=json)
        return
    options = request.decode(translator.decode)
    if file is not None:
        processes = partial(bulk.processes, model, workers, ray, out, engine, device, threads)
        documents.document(
            translator,
            file,
            out=out,
            format=format,
            column=column,
            glossary=glossary,
            options=options,
            seed=seed,
            json=json,
            processes=None if workers is None and ray is None else processes,
        )
    elif glossary is not None:
        documents.lines(
            translator,
            read(texts),
            glossary=glossary,
            options=options,
            seed=seed,
            json=json,
            at_a_time=at_a_time,
        )
    else:
        _translate(translator, request, read(texts), at_a_time, json=json)


def _translate(
    translator: "Predictor",
    request: "TranslateRequest",
    texts: Iterator[str],
    at_a_time: int,
    *,
    json: bool,
) -> None:
    from manyheads.app.predictors.stream import stream
    from manyheads.app.predictors.text_predictor import one_line
    from manyheads.cli.show import print_json, warn, warn_of

    answers = stream(translator.answer, request, texts, at_a_time)
    for number, answer in enumerate(answers, 1):
        text, best = answer.source, answer.n_best
        if json:
            print_json(answer.to_json())
        else:
            for each in best:
                line = one_line(each.text)
                print(line if request.n_best == 1 else f"{each.score:.4f}\t{line}", flush=True)
        if len(best) < request.n_best and text.strip():
            warn(
                f"text {number}: the search found {len(best)} different translations, not "
                f"{request.n_best}. Raise --diverse or --beam, or try --sample."
            )
        warn_of(number, answer.notes)
