"""manyheads translate."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from manyheads.tasks.decoding import Translation
    from manyheads.tasks.details import OutputToken

# Panels of the help.
SEARCH, SAMPLING, ANSWERS, DOCUMENTS = "Search", "Sampling", "Answers", "Documents"


def run(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts; without any, the lines of stdin."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Name of a shipped model, or a folder.")
    ] = "multi30k-en-de",
    file: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=DOCUMENTS,
            help="A document to translate, - for stdin: lines, tags, numbers... stay.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(rich_help_panel=DOCUMENTS, help="Where to write its translation."),
    ] = None,
    glossary: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=DOCUMENTS, help="Lines of term, tab, translation that it must have."
        ),
    ] = None,
    n_best: Annotated[
        int, typer.Option(min=1, rich_help_panel=ANSWERS, help="Translations a text.")
    ] = 1,
    json: Annotated[
        bool, typer.Option("--json", rich_help_panel=ANSWERS, help="One JSON object a line.")
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", rich_help_panel=ANSWERS, help="In JSON: of each token."),
    ] = False,
    align: Annotated[
        bool,
        typer.Option(
            "--align",
            rich_help_panel=ANSWERS,
            help="In JSON: also the token of the text that each token read most.",
        ),
    ] = False,
    beam: Annotated[
        int | None,
        typer.Option(
            min=1,
            rich_help_panel=SEARCH,
            help="Beams of the search, 1 is greedy; the model's own if not given.",
        ),
    ] = None,
    length_penalty: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=SEARCH, help="Above 1 favours long translations, below short."
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            min=0, rich_help_panel=SEARCH, help="What unread parts of the text cost, such as 0.2."
        ),
    ] = None,
    diverse: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=SEARCH,
            help="With --n-best: what a word costs that another translation has, such as 0.5.",
        ),
    ] = None,
    no_repeat_ngram: Annotated[
        int | None,
        typer.Option(
            min=0, rich_help_panel=SEARCH, help="So many tokens in a row never occur twice."
        ),
    ] = None,
    prefix: Annotated[
        str, typer.Option(rich_help_panel=SEARCH, help="What every translation begins with.")
    ] = "",
    sample: Annotated[
        bool,
        typer.Option("--sample", rich_help_panel=SAMPLING, help="Draw the words by probability."),
    ] = False,
    temperature: Annotated[
        float | None,
        typer.Option(rich_help_panel=SAMPLING, help="Below 1 draws safer words, above 1 bolder."),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(min=1, rich_help_panel=SAMPLING, help="Draw from so many likeliest tokens."),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=SAMPLING, help="Draw from the likeliest with this probability together."
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, rich_help_panel=SAMPLING, help="Another one draws others.")
    ] = 1,
) -> None:
    """Translate texts: one answer a line, in order; or a document."""
    from manyheads.app.documents import longest_source, source_length
    from manyheads.app.predict import LINES, Translator, load
    from manyheads.app.texts import one_line
    from manyheads.cli import documents
    from manyheads.cli.show import other_use, print_json, warn
    from manyheads.cli.texts import texts as read
    from manyheads.errors import UsageError

    if (probabilities or align) and not json:
        raise UsageError("--probabilities and --align are told in JSON: add --json.")
    if diverse is not None and n_best == 1:
        raise UsageError("--diverse makes several translations differ: add --n-best 4, say.")
    if out is not None and file is None:
        raise UsageError("--out is for the translation of a document: add --file.")
    if file is not None and texts:
        raise UsageError("--file or texts, not both.")
    if (file or glossary) and (n_best > 1 or prefix or probabilities or align):
        raise UsageError(
            "--file and --glossary give one translation: leave out --n-best, --prefix, "
            "--probabilities and --align."
        )
    translator = load(model)
    if not isinstance(translator, Translator):
        raise UsageError(f"{model} does not translate: {other_use(translator)}")
    drawn = sample or any(each is not None for each in (temperature, top_k, top_p))
    if drawn and beam is not None:
        raise UsageError("Sampling has no beams: leave out --beam, or what belongs to sampling.")
    beams = beam or translator.decode.beams
    changes = {
        "beams": beams if diverse is None else -(-beams // n_best) * n_best,
        "length_penalty": length_penalty,
        "coverage_penalty": coverage,
        "groups": None if diverse is None else n_best,
        "diversity": diverse,
        "no_repeat_ngram": no_repeat_ngram,
        "sample": drawn or None,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
    }
    options = translator.options(**{k: v for k, v in changes.items() if v is not None})
    at_a_time = 1 if not texts and sys.stdin.isatty() else LINES  # a person waits for each answer
    if file is not None:
        documents.document(
            translator, file, out=out, glossary=glossary, options=options, seed=seed, json=json
        )
        return
    if glossary is not None:
        documents.lines(
            translator,
            read(texts),
            glossary=glossary,
            options=options,
            seed=seed,
            json=json,
            at_a_time=at_a_time,
        )
        return
    longest = longest_source(translator)
    waiting: list[str] = []

    def remember(lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            waiting.append(line)
            yield line

    answers = translator.stream(
        remember(read(texts)),
        n_best=n_best,
        options=options,
        prefix=prefix,
        seed=seed,
        details=probabilities,
        align=align,
        lines=at_a_time,
    )
    for number, best in enumerate(answers, 1):
        text = waiting.pop(0)
        if json:
            found = [_account(each) for each in best]
            print_json({"source": text, "translation": best[0].text, "n_best": found})
        else:
            for each in best:
                answer = one_line(each.text)
                print(answer if n_best == 1 else f"{each.score:.4f}\t{answer}", flush=True)
        if len(best) < n_best and text.strip():
            warn(
                f"text {number}: the search found {len(best)} different translations, not "
                f"{n_best}. Raise --diverse or --beam, or try --sample."
            )
        if not best[0].finished:
            warn(f"text {number}: the translation was cut off at the length limit.")
        long = len(text.encode()) >= longest  # hardly ever more tokens than bytes
        if long and (tokens := source_length(translator, text)) > longest:
            warn(
                f"text {number} has {tokens} tokens, more than any in training ({longest}): --file "
                "translates long lines sentence by sentence."
            )


def _account(translation: "Translation") -> dict[str, Any]:
    """What JSON says of a translation."""
    said = {
        "text": translation.text,
        "score": translation.score,
        "finished": translation.finished,
    }
    if translation.details is None:
        return said
    return said | {"tokens": [_token(token) for token in translation.details]}


def _token(token: "OutputToken") -> dict[str, Any]:
    """What JSON says of a token; begin and end count characters."""
    said: dict[str, Any] = {
        "token": token.text,
        "probability": round(token.probability, 6),
        "begin": token.begin,
        "end": token.end,
    }
    if token.source is None or token.share is None:
        return said
    source = {"token": token.source.text, "begin": token.source.begin, "end": token.source.end}
    return said | {"source": source | {"share": round(token.share, 4)}}
