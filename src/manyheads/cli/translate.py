"""manyheads translate."""

import os
import sys
from functools import partial
from pathlib import Path

from manyheads.asks.load_options import LoadOptions
from manyheads.asks.translate_request import TranslateAnswer, TranslateRequest

# Shipped translators of everyday text in a language; the default reads English.
INTO_ENGLISH = {"de": "de-en", "ko": "ko-en"}


def run(
    request: TranslateRequest,
    load: LoadOptions,
    texts: list[str] | None = None,
    model: str | None = None,
    to: str | None = None,
    file: str | None = None,
    out: Path | None = None,
    column: str | None = None,
    glossary: Path | None = None,
    format: str | None = None,
    json: bool = False,
    workers: int | None = None,
    ray: str | None = None,
) -> None:
    """Translate texts: one answer a line, in order; or a document."""
    from manyheads.cli import bulk, documents
    from manyheads.cli.printed_answers import warn
    from manyheads.cli.texts import texts as read
    from manyheads.errors import UsageError
    from manyheads.predict.load import load_for
    from manyheads.predict.stream import AT_A_TIME, stream
    from manyheads.tasks.translate.predictor import Translator

    if (request.probabilities or request.align) and not json:
        raise UsageError("--probabilities and --align are told in JSON: add --json.")
    if out is not None and file is None:
        raise UsageError("--out is for the translation of a document: add --file.")
    if format is not None and file is None:
        raise UsageError("--format is of a document: add --file.")
    if (workers is not None or ray is not None) and file is None:
        raise UsageError("--workers and --ray divide a document: add --file.")
    if file is not None and texts:
        raise UsageError("--file or texts, not both.")
    several = request.n_best > 1 or request.prefix or request.probabilities or request.align
    if (file or glossary) and several:
        raise UsageError(
            "--file and --glossary give one translation: leave out --n-best, --prefix, "
            "--probabilities and --align."
        )
    if (file or glossary) and request.without:
        raise UsageError("--without is for texts: leave out --file and --glossary.")
    if model is not None and to is not None:
        raise UsageError("--to chooses a shipped model, and --model names one: leave out either.")
    for text in texts or []:
        if os.path.isfile(text):  # noqa: PTH113 - Path raises on a name too long
            warn(f"{text} is translated as a text: --file {text} translates what is in it.")
    if model is None:
        model, why = general(texts or [], to)
        if why is not None:
            warn(f"{why}; --model chooses another.")
    translator = load_for(TranslateRequest, model, verb="translate", **dict(load))
    # A person waits for each answer.
    at_a_time = 1 if not texts and sys.stdin.isatty() else AT_A_TIME
    if not (file or glossary):
        answers = stream(translator.answer, request, read(texts), at_a_time)
        for number, answer in enumerate(answers, 1):
            _print(number, answer, request, json=json)
    elif not isinstance(translator, Translator):  # a predictor from outside the package
        raise UsageError(f"{model} translates texts only: leave out --file and --glossary.")
    elif file is not None:
        processes = partial(bulk.processes, model, workers, ray, out, load)
        documents.document(
            translator,
            request,
            file,
            out=out,
            format=format,
            column=column,
            glossary=glossary,
            json=json,
            processes=None if workers is None and ray is None else processes,
        )
    elif glossary is not None:
        documents.lines(translator, request, read(texts), glossary, at_a_time, json=json)


def general(texts: list[str], to: str | None) -> tuple[str, str | None]:
    """Choose a shipped translator by the language of the texts that a command was given.

    Returns its name, and why, where a person would ask.

    Raises:
        UsageError: none translates from this language to `to`, or the language is not recognised.
    """
    from manyheads.data.text.languages import NAMES, recognise
    from manyheads.errors import UsageError

    languages = ["en", "fr", *INTO_ENGLISH]
    language = recognise(" ".join(texts), languages)
    each = {recognise(text, languages) for text in texts}
    if "ko" in each and len(each - {None}) > 1:  # of another script, so without doubt
        raise UsageError(
            "Some of the texts are in Korean and some are not, and a model reads one language: "
            "give those of a language at a time, or name a model with --model."
        )
    if to is not None:
        from manyheads.picture_translation import same_language, shipped_translator

        if language is None and same_language(to, "en"):
            raise UsageError(
                "Into English, but from which language? It is not recognised, and in files and "
                "stdin not looked for: name a model with --model, such as "
                f"{' or '.join(INTO_ENGLISH.values())}."
            )
        return shipped_translator(language or "en", to), None
    if language in (None, "en"):
        return "en-de", None
    if language not in INTO_ENGLISH:
        return "en-de", f"the text looks {NAMES[language]}, and en-de reads English"
    model = INTO_ENGLISH[language]
    return model, f"{NAMES[language]} is translated by {model}"


def _print(number: int, answer: TranslateAnswer, request: TranslateRequest, *, json: bool) -> None:
    from manyheads.cli.printed_answers import print_json, warn, warn_of
    from manyheads.predict.text_reader import one_line

    if json:
        print_json(answer.to_json())
    else:
        for each in answer.n_best:
            line = one_line(each.text)
            print(line if request.n_best == 1 else f"{each.score:.4f}\t{line}", flush=True)
    if len(answer.n_best) < request.n_best and answer.source.strip():
        warn(
            f"text {number}: the search found {len(answer.n_best)} different translations, not "
            f"{request.n_best}. Raise --diverse or --beam, or try --sample."
        )
    warn_of(number, answer.notes)
