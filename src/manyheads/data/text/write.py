"""Write parallel text atomically: two files, .tsv, .csv or .jsonl."""

import csv
import gzip
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, cast

from manyheads.data.text.formats import Pair
from manyheads.data.text.lines import ending
from manyheads.errors import DataError, UsageError
from manyheads.strict_json import dumps

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
def writing(out: Path, source: str, target: str) -> Iterator[Callable[[Pair], None]]:
    """Yield a function that writes pairs; the files are renamed to `out` at the end.

    Raises:
        UsageError: the files exist, or the format cannot be written.
        DataError: a text has a line break or tab that the format does not allow.
    """
    paths = outputs(out, source, target)
    reject_existing_files(paths)
    parts = [path.with_name(f"{path.name}.part") for path in paths]
    try:
        with ExitStack() as stack:
            files = [
                stack.enter_context(_create(part, packed=path.suffix == ".gz"))
                for part, path in zip(parts, paths, strict=True)
            ]
            yield _writer(files, ending(out), source, target)
        for part, path in zip(parts, paths, strict=True):
            part.rename(path)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def _create(path: Path, *, packed: bool) -> IO[str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    if packed:
        return cast(IO[str], gzip.open(path, "wt", encoding="utf-8", newline=""))
    return path.open("w", encoding="utf-8", newline="")


def _writer(files: list[IO[str]], suffix: str, source: str, target: str) -> Callable[[Pair], None]:
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
                    f"cannot be written to {files[0].name}. Write a .csv or .jsonl file."
                )
        if len(files) == 1:
            files[0].write(f"{pair.source}\t{pair.target}\n")
        else:
            files[0].write(f"{pair.source}\n")
            files[1].write(f"{pair.target}\n")

    return write_lines
