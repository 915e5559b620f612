"""Strict readers of rows: .tsv, .csv, .jsonl and .parquet files, and data sets on the hub.

Sentence pairs, labelled images and images with texts are views of these rows. A row that breaks the
format is reported with its number, and left out.
"""

import csv
import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from manyheads.data.text.lines import Problem, Report, blocks, lines, open_content, raw_lines
from manyheads.errors import DataError, UsageError, nearest, optional_import
from manyheads.strict_json import loads

HUB = "hub:"  # hub:owner/name[:configuration][:split]
LISTINGS = (".csv", ".tsv", ".jsonl")
TABLES = (".parquet", *LISTINGS)

# Checks the columns of a parquet file, each with its type, and returns those to read.
Choose = Callable[[Mapping[str, Any]], Sequence[str]]


class Row(NamedTuple):
    """A row of a table, or an object of a .jsonl file."""

    number: int  # of its first line, or of the row; from 1
    place: str  # file and number, for messages
    cells: Mapping[str, Any]


def tsv_rows(path: Path, report: Report) -> Iterator[tuple[int, list[str] | None]]:
    """Yield line numbers and cells; quotation marks are ordinary. None: the line was reported."""
    for number, text in lines(path, report):
        yield number, None if text is None else text.split("\t")


def csv_rows(path: Path, report: Report) -> Iterator[tuple[int, list[str] | None]]:
    """Yield the first line and the cells of records as in RFC 4180. None: it was reported."""
    line = 0
    damaged = False  # a line of the record was reported

    def feed() -> Iterator[str]:
        nonlocal line, damaged
        for line, text in raw_lines(path, report):  # noqa: B007 - read by the enclosing function
            damaged = damaged or text is None
            yield text or ""

    records = csv.reader(feed(), strict=True)
    while True:
        begin, damaged = line + 1, False
        try:
            record = next(records)
        except StopIteration:
            return
        except csv.Error as error:
            message = (
                f"the record that begins here is not valid CSV: {error}. Quote a field that "
                'contains a comma, a line break or a quote, and write a quote in it as "".'
            )
            report(Problem("invalid-record", begin, f"{path}, line {begin}", message))
        else:
            yield begin, None if damaged else record


def json_rows(path: Path, report: Report) -> Iterator[Row]:
    """Yield one JSON value per line, which may be no object; empty lines are skipped."""
    for number, text in lines(path, report):
        if text is None or not text.strip():
            continue
        place = f"{path}, line {number}"
        try:
            yield Row(number, place, loads(text))
        except ValueError as error:
            message = f"not valid JSON ({error}). Write one object a line."
            report(Problem("invalid-record", number, place, message, text))


def parquet_rows(
    path: Path,
    choose: Choose,
    report: Report,
    *,
    size: int = 256,
    extra: str = "images",
    name: str | None = None,
) -> Iterator[Row]:
    """Yield the chosen columns of a parquet file, which may be in a .gz, `size` rows at a time.

    Messages call it `name`, if not by its path.

    Raises:
        NotFoundError: no such file.
        DataError: it cannot be read.
        MissingExtraError: pyarrow is not installed.
    """
    with optional_import("pyarrow", extra=extra):
        import pyarrow as pa
        import pyarrow.parquet as pq
    number, name = 0, name or str(path)
    try:
        # Without a buffer ahead, a large file is never in memory as a whole.
        with _seekable(path, report) as content, pq.ParquetFile(content, pre_buffer=False) as file:
            types = dict(zip(file.schema_arrow.names, file.schema_arrow.types, strict=True))
            columns = list(dict.fromkeys(choose(types)))
            for batch in file.iter_batches(size, columns=columns) if columns else ():
                for row in _decoded(batch):
                    number += 1
                    place = f"{name}, row {number}"
                    if isinstance(row, UnicodeDecodeError):
                        byte = f"byte {row.start + 1} of the text, 0x{row.object[row.start]:02x}"
                        message = f"{byte}, is not valid UTF-8. Convert the texts."
                        text = row.object.decode("utf-8", "backslashreplace")
                        report(Problem("invalid-utf8", number, place, message, text))
                    else:
                        yield Row(number, place, row)
    # The last three: what Python cannot hold, such as dates beyond the year 9999.
    except (pa.ArrowException, OSError, ValueError, OverflowError, KeyError) as error:
        raise DataError(f"{name} cannot be read as parquet: {str(error).rstrip('.')}.") from error


def _seekable(path: Path, report: Report) -> IO[bytes]:
    """Open a seekable file; a compressed one is unpacked into a temporary file."""
    if path.suffix != ".gz":
        return open_content(path)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it, and then it is gone
    file.writelines(blocks(path, report))
    file.seek(0)
    return file


def _decoded(batch: Any) -> Iterator[dict[str, Any] | UnicodeDecodeError]:
    """Yield the rows of a batch; for a row that is not UTF-8, the error."""
    try:
        rows = batch.to_pylist()
    except UnicodeDecodeError as error:
        singles = (batch.slice(row, 1) for row in range(batch.num_rows))
        rows = [error] if batch.num_rows == 1 else chain.from_iterable(map(_decoded, singles))
    yield from rows


def column_type(kind: Any) -> str:
    """Name the type of a parquet column; of one with numbered values that of the values."""
    return str(kind.value_type if str(kind).startswith("dictionary") else kind)


TEXTS = ("string", "large_string", "string_view", "null")  # types of columns of texts, or nothing


def table_rows(
    path: Path,
    wanted: Sequence[str],
    keys: str,
    report: Report,
    check: Callable[[Mapping[str, Any]], None] = lambda _: None,
) -> Iterator[Row]:
    """Yield the rows of a file of TABLES; a .csv or .tsv has a header.

    All have the columns `wanted`, which `keys` tells how to name; but each row of a .jsonl has its
    own keys. `check` refuses types of the columns of a .parquet before any row is read.

    Raises:
        DataError: as `parquet_rows` and `require_columns`; or two columns have the same name.
    """
    if path.suffix == ".parquet":

        def choose(types: Mapping[str, Any]) -> Sequence[str]:
            require_columns(wanted, types, str(path), keys)
            check(types)
            return wanted

        yield from parquet_rows(path, choose, report)
        return
    if path.suffix == ".jsonl":
        for row in json_rows(path, report):
            if isinstance(row.cells, dict):
                yield row
                continue
            place = f"{row.place} is not an object"
            report(Problem("invalid-record", row.number, place, "expected keys and values."))
        return
    read = tsv_rows if path.suffix == ".tsv" else csv_rows
    filled = ((line, cells) for line, cells in read(path, report) if cells and cells != [""])
    first, header = next(filled, (0, []))
    if len(set(header)) < len(header):
        raise DataError(f"{path}, line {first}: two columns have the same name: {header}.")
    for line, cells in filled:
        place = f"{path}, line {line}"
        if len(cells) == len(header):
            require_columns(wanted, header, place, keys)
            yield Row(line, place, dict(zip(header, cells, strict=True)))
            continue
        place = f"{place} has {len(cells)} cells, the header has {len(header)}"
        message = f"{', '.join(header)}. In a .csv, quote the cells that contain separators."
        report(Problem("invalid-record", line, place, message))


def require_columns(wanted: Iterable[str], seen: Iterable[str], origin: str, keys: str) -> None:
    """Refuse a table that has no such columns; `keys` tells how to name them.

    Raises:
        DataError: a column is missing.
    """
    known = list(dict.fromkeys(seen))
    if missing := [name for name in dict.fromkeys(wanted) if name not in known]:
        raise DataError(
            f"{origin} has no {' or '.join(missing)}{nearest(missing[0], known)}"
            f"It has {', '.join(known) or 'nothing'}. {keys}."
        )


# --- The hub ------------------------------------------------------------------------------------


def open_hub(name: str, **options: Any) -> Any:
    """Open hub:owner/name, hub:owner/name:split or hub:owner/name:configuration:split.

    `options` are those of `load_dataset`.

    Raises:
        MissingExtraError: the package `datasets` is not installed.
        UsageError: the name has another form.
        DataError: the data set cannot be downloaded.
    """
    with optional_import("datasets", extra="datasets"):
        from datasets import load_dataset
    repository, *rest = name.removeprefix(HUB).split(":")
    if len(rest) > 2 or not repository:
        raise UsageError(
            f"{name!r} is not the name of a data set: hub:owner/name, hub:owner/name:split, or "
            "hub:owner/name:configuration:split."
        )
    split = rest[-1] if rest else "train"
    configuration = rest[0] if len(rest) == 2 else None
    try:
        return load_dataset(repository, configuration, split=split, **options)
    except (OSError, ValueError) as error:  # not there, no such split, no network
        raise DataError(f"{name} cannot be read: {error}.") from error


def hub_rows(name: str) -> Iterator[Row]:
    """Yield the rows of a data set that `open_hub` opens, while they come."""
    rows = open_hub(name, streaming=True)
    try:
        for number, row in enumerate(rows, 1):
            yield Row(number, f"{name}, row {number}", row)
    except (OSError, ValueError) as error:  # the network
        raise DataError(f"{name} cannot be read: {error}.") from error


def open_hub_images(name: str, image: str, others: Iterable[str], keys: str) -> tuple[Any, str]:
    """Open a data set with a column of images, which stay encoded; return a sha256 of it, too.

    Raises:
        DataError: as `open_hub`, or it has no such columns.
    """
    rows = open_hub(name)
    from datasets import Image

    require_columns([image, *others], rows.column_names, name, keys)
    digest = hashlib.sha256(str(getattr(rows, "_fingerprint", name)).encode()).hexdigest()
    return rows.cast_column(image, Image(decode=False)), digest
