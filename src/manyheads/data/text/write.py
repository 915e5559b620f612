"""Write parallel text atomically: two files, .tsv, .csv or .jsonl."""

import csv
import gzip
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO

from manyheads.data.text.formats import Pair
from manyheads.data.text.lines import ending
from manyheads.errors import DataError, UsageError
from manyheads.files import writing as open_output
from manyheads.strict_json import dumps

Write = Callable[[Pair], None]
FORMS = (".tsv", ".csv", ".jsonl")  # or two files; all may be compressed


def outputs(out: Path, source: str, target: str) -> list[Path]:
    """Return the files that writing to `out` creates.

    Raises:
        UsageError: the format can be read but not written.
    """
    suffix = ending(out)
    if suffix in (".parquet", ".tmx"):
        raise UsageError(
            f"{out}: {suffix} files can be read, but not written. Use {', '.join(FORMS)}, or a "
            "name without such an ending for two files."
        )
    if suffix in FORMS:
        return [out]
    packed = ".gz" if out.suffix == ".gz" else ""
    return [Path(f"{str(out).removesuffix('.gz')}.{side}{packed}") for side in (source, target)]


def reject_existing_files(paths: list[Path]) -> None:
    """Refuse to overwrite files.

    Raises:
        UsageError: a file exists.
    """
    for path in paths:
        if path.exists():
            raise UsageError(f"{path} exists and is not overwritten: choose another name.")


@contextmanager
def writing(out: Path, source: str, target: str) -> Iterator[Write]:
    """Yield a function that writes pairs; the files are complete, or not there.

    Raises:
        UsageError: the files exist, or the format cannot be written.
        DataError: a text has a line break or tab that the format does not allow.
    """
    paths = outputs(out, source, target)
    reject_existing_files(paths)
    with ExitStack() as stack:
        # All are complete before the first gets its name: texts are closed before their files.
        opened = [stack.enter_context(open_output(path)) for path in paths]
        texts = [stack.enter_context(_as_text(*each)) for each in zip(opened, paths, strict=True)]
        yield _writer(texts, out, source, target)


@contextmanager
def _as_text(file: BinaryIO, path: Path) -> Iterator[TextIOWrapper]:
    """Write text to an open file, which stays open; packed if its name says so."""
    packed = path.suffix == ".gz"
    content = gzip.GzipFile("", "wb", fileobj=file) if packed else file
    text = TextIOWrapper(content, encoding="utf-8", newline="")
    try:
        yield text
    finally:
        try:
            text.detach()
        finally:  # or Python tries again when nobody can be told
            if packed:
                content.close()
        file.flush()


def _writer(files: list[TextIOWrapper], out: Path, source: str, target: str) -> Write:
    suffix = ending(out)
    if suffix == ".csv":
        records = csv.writer(files[0])
        records.writerow([source, target])
        return lambda pair: records.writerow([pair.source, pair.target])
    if suffix == ".jsonl":

        def write_json(pair: Pair) -> None:
            row = {source: pair.source, target: pair.target}
            files[0].write(f"{dumps(row)}\n")

        return write_json

    forbidden = "\n\t" if suffix == ".tsv" else "\n"

    def write_lines(pair: Pair) -> None:
        for text in pair[1:]:
            if text.endswith("\r") or any(character in text for character in forbidden):
                raise DataError(
                    f"line {pair.line}: a text with a line break or tab in it, {text[:60]!r}, "
                    f"cannot be written to {out}. Write a .csv or .jsonl file."
                )
        if len(files) == 1:
            files[0].write(f"{pair.source}\t{pair.target}\n")
        else:
            files[0].write(f"{pair.source}\n")
            files[1].write(f"{pair.target}\n")

    return write_lines
