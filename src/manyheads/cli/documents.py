"""The part of manyheads translate that keeps structure: --file and --glossary."""

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from manyheads.strict_json import dumps

if TYPE_CHECKING:
    from manyheads.app.documents.documents import Document
    from manyheads.app.predictors.translator import Translator
    from manyheads.tasks.decode_config import DecodeConfig


def document(
    translator: "Translator",
    file: Path,
    *,
    out: Path | None,
    format: str | None,
    glossary: Path | None,
    options: "DecodeConfig",
    seed: int,
    json: bool,
) -> None:
    """Translate a document; "-" is the standard input. The answer goes to stdout or to a file."""
    from manyheads.app.documents.documents import read_content, translate_file
    from manyheads.app.project.folder import own_files
    from manyheads.app.project.paths import make_room
    from manyheads.cli.show import warn
    from manyheads.cli.terminal import write_bytes
    from manyheads.data.documents.formats import TEXT_FORMATS, format_of
    from manyheads.data.documents.glossary import Glossary
    from manyheads.errors import UsageError
    from manyheads.files import write_atomically

    if out is not None:
        stdin = 0 if str(file) == "-" else None
        make_room(out, file, glossary, stdin, *own_files(translator.folder.path))
    elif format_of(file, format) not in TEXT_FORMATS and not json and sys.stdout.isatty():
        raise UsageError(f"{file} is not a text that a terminal could show: add --out.")
    terms = None if glossary is None else Glossary.read(glossary)
    source = read_content(None if str(file) == "-" else file)
    translated = translate_file(
        translator, source, str(file), format=format, glossary=terms, options=options, seed=seed
    )
    content = _json(translated).encode() if json else translated.content
    if out is None:
        write_bytes(content)
    else:
        write_atomically(out, content)
    for note in translated.notes:
        warn(note)


def lines(
    translator: "Translator",
    texts: Iterator[str],
    *,
    glossary: Path,
    options: "DecodeConfig",
    seed: int,
    json: bool,
    at_a_time: int,
) -> None:
    """Translate texts with a glossary: one answer a line, in order."""
    from manyheads.app.documents.documents import translate_lines
    from manyheads.cli.show import warn
    from manyheads.data.documents.glossary import Glossary

    terms = Glossary.read(glossary)
    first = 1
    while chunk := list(islice(texts, at_a_time)):
        translated = translate_lines(
            translator, chunk, glossary=terms, options=options, seed=seed, first=first
        )
        print(_json(translated) if json else translated.text, end="", flush=True)
        for note in translated.notes:
            warn(note)
        first += len(chunk)


def _json(document: "Document") -> str:
    from dataclasses import asdict

    lines = (asdict(line) for line in document.lines)
    return "".join(dumps({document.unit: line.pop("number"), **line}) + "\n" for line in lines)
