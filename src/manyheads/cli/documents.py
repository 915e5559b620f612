"""The part of manyheads translate that keeps structure: --file and --glossary."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyheads.cli.printed_answers import warn
from manyheads.strict_json import dumps

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from manyheads.asks.translate_request import TranslateRequest
    from manyheads.documents.document_translation import Document, SentenceTranslator
    from manyheads.documents.fallbacks import FallbackTranslator
    from manyheads.tasks.translate.predictor import Translator

    _Through = Callable[[FallbackTranslator], SentenceTranslator]


def document(
    translator: "Translator",
    request: "TranslateRequest",
    file: str,
    *,
    out: Path | None,
    format: str | None,
    column: str | None,
    glossary: Path | None,
    json: bool,
    processes: "Callable[[], AbstractContextManager[_Through]] | None" = None,
) -> None:
    """Translate a document or a table; "-" is the standard input. The answer goes to stdout or out.

    A table is given back as text, one line a row, unless `out` is one. `processes` are started, and
    give what translates, when all is checked.
    """
    from manyheads.bulk.finished_blocks import check_ledger, ledger_of
    from manyheads.cli.terminal import write_bytes
    from manyheads.data.documents.document_formats import TEXT_FORMATS, format_of
    from manyheads.data.documents.glossary import Glossary
    from manyheads.documents.document_translation import read_content, translate_file
    from manyheads.documents.table_translation import is_table, matches, table_of, translate_table
    from manyheads.errors import UsageError
    from manyheads.files import write_atomically
    from manyheads.project.folder import own_files
    from manyheads.project.paths import make_room
    from manyheads.project.remote import is_remote, local_path

    file = local_path(file)
    of_table = format is None and is_table(file)
    to_table = out is not None and is_table(str(out)) and not json
    if column is not None and not of_table:
        raise UsageError(f"--column is of a .parquet table, which {file} is not.")
    if is_remote(file) and not of_table:
        raise UsageError(
            f"{file} is an address, by which only .parquet tables are read: copy it here first."
        )
    kind = "text" if of_table else format_of(file, format)
    if to_table and kind != "text":
        raise UsageError(
            f"{file} is {kind}, which has no rows: give --out another ending than .parquet."
        )
    if out is not None:
        texts = matches(file) if of_table else [0 if file == "-" else file]
        inputs = [*texts, glossary, *own_files(translator.folder.path)]
        make_room(out, *inputs)
        if processes is not None:
            check_ledger(ledger_of(out), inputs)
    elif kind not in TEXT_FORMATS and not json and sys.stdout.isatty():
        raise UsageError(f"{file} is not a text that a terminal could show: add --out.")
    terms = None if glossary is None else Glossary.read(glossary)
    options: Any = {"options": request.decode(translator.decode), "seed": request.seed}
    with nullcontext() if processes is None else processes() as through:
        options |= {"glossary": terms, "through": through}
        if of_table:
            translated = translate_table(translator, file, column=column, **options)
        else:
            source = read_content(None if file == "-" else Path(file))
            translated = translate_file(translator, source, file, format=format, **options)
        if json:
            content = _json(translated).encode()
        else:
            content = table_of(translated) if to_table else translated.content
        if out is None:
            write_bytes(content)
        else:
            write_atomically(out, content)
    for note in translated.notes:
        warn(note)


def lines(
    translator: "Translator",
    request: "TranslateRequest",
    texts: Iterator[str],
    glossary: Path,
    at_a_time: int,
    *,
    json: bool,
) -> None:
    """Translate texts with a glossary: one answer a line, in order."""
    from manyheads.data.documents.glossary import Glossary
    from manyheads.documents.document_translation import translate_lines

    options: Any = {"options": request.decode(translator.decode), "seed": request.seed}
    options["glossary"] = Glossary.read(glossary)
    first = 1
    while chunk := list(islice(texts, at_a_time)):
        translated = translate_lines(translator, chunk, first=first, **options)
        print(_json(translated) if json else translated.text, end="", flush=True)
        for note in translated.notes:
            warn(note)
        first += len(chunk)


def _json(document: "Document") -> str:
    lines = (asdict(line) for line in document.lines)
    return "".join(dumps({document.unit: line.pop("number"), **line}) + "\n" for line in lines)
