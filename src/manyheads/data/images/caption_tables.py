"""Images with texts in tables: .parquet, .csv, .tsv, .jsonl, or a data set on the hub.

A row has an image and its texts. Rows with the same path are one image, with the texts of all rows.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from manyheads.data.images.caption_collector import (
    CaptionCollector,
    CaptionColumns,
    Report,
    refuse,
    require_columns,
)
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.cell_store import IN_MEMORY, CellStore
from manyheads.data.images.image_file import ImageContent, open_content, read_cell, read_content
from manyheads.data.images.image_manifest import LISTINGS, listing_rows
from manyheads.data.regular_files import require_regular, size_of
from manyheads.data.text.formats import open_hub
from manyheads.data.text.lines import content_hash
from manyheads.data.text.parquet_rows import decoded_rows
from manyheads.errors import DataError, nearest, optional_import
from manyheads.files import expand_user

TABLES = (".parquet", *LISTINGS)
ROWS = 256  # of a parquet file that are read at a time
VALUES = 20  # of a column that are remembered for messages


class Selection(NamedTuple):
    """The rows of a table that have this value in a column."""

    column: str
    value: str

    def __str__(self) -> str:
        """Write it as in the name of data."""
        return f"[{self.column}={self.value}]"


def selected_hash(digest: str, only: Selection | None) -> str:
    """Return the sha256 of a part of a file, given that of the file."""
    return digest if only is None else hashlib.sha256(f"{digest}{only}".encode()).hexdigest()


class Selector:
    """Tells which rows are selected, and remembers what else was there."""

    def __init__(self, only: Selection | None) -> None:
        self.only = only
        self._found = only is None
        self._others: dict[str, None] = {}

    def __call__(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a row is selected."""
        if self.only is None:
            return True
        value = str(row.get(self.only.column))
        if value == self.only.value:
            self._found = True
            return True
        if len(self._others) < VALUES:
            self._others[value] = None
        return False

    def require_rows(self, origin: str) -> None:
        """Refuse a selection of nothing.

        Raises:
            DataError: no row was selected.
        """
        if not self._found and self.only is not None and self._others:
            raise DataError(
                f"{origin}: no row has {self.only.column} = {self.only.value!r}"
                f"{nearest(self.only.value, self._others)}There are "
                f"{', '.join(map(repr, self._others))[:200]}."
            )


def read_caption_tables(
    paths: Sequence[Path],
    columns: CaptionColumns,
    *,
    only: Selection | None = None,
    folder: Path | None = None,
    report: Report = refuse,
) -> CaptionedImages:
    """Read tables of images and texts.

    Images in a .parquet are bytes, paths, or Hugging Face's struct of both; in other tables paths.
    Images that are bytes in files larger than memory are kept in a temporary file.

    Args:
        paths: tables of one kind.
        columns: where images and texts are.
        only: the rows to read.
        folder: what paths of images are relative to; None: the folder of their table.
        report: called with each image or text that cannot be used.

    Raises:
        MissingExtraError: pyarrow is not installed.
        DataError: a file cannot be read, has no such columns, or nothing that can be used.
    """
    origin = ", ".join(map(str, paths))
    found, store, select = CaptionCollector(columns, report), CellStore(IN_MEMORY), Selector(only)
    wanted = [columns.image, *columns.names, *([only.column] if only else [])]
    hashes, seen = [], dict[str, None]()
    for path in paths:
        first, sizes = True, list[int]()
        for place, row in _rows(path, wanted, found):
            if first:  # of a .jsonl, every row has its own keys
                require_columns(wanted[:1] if path.suffix == ".jsonl" else wanted, row, str(path))
            first = False
            seen |= dict.fromkeys(row)
            if not select(row):
                continue
            content = _content(row[columns.image]) if columns.image in row else None
            if content is None:
                cell = f"{columns.image} is {row.get(columns.image)!a:.50}"
                found.without_image(place, f"{cell}, neither an image nor a path")
            elif isinstance(content, bytes):
                found.add(place, store.add(content), columns.pick(row))
            else:
                at = (folder or path.parent) / expand_user(content)
                sizes.append(size_of(at))
                found.add(str(at), at, columns.pick(row), place=place, key=str(at))
        hashes.append(_hash(path, sizes, only))
    if seen:
        require_columns(wanted, seen, origin)
    select.require_rows(origin)

    def read(cell: int | Path) -> ImageContent:
        return open_content(read_content(cell) if isinstance(cell, Path) else store[cell])

    return found.finish(read, origin=f"{origin}{only or ''}", hashes=tuple(hashes))


def _content(cell: object) -> bytes | str | None:
    """Return the bytes or the path in a cell, if it has either."""
    if isinstance(cell, Mapping):
        cell = cell.get("bytes") or cell.get("path")
    return cell if isinstance(cell, bytes | str) and cell else None


def _hash(path: Path, sizes: Sequence[int], only: Selection | None) -> str:
    """Hash a table; of images that are files of their own their sizes, as for folders."""
    digest = content_hash(path)
    if path.suffix != ".parquet" or sizes:
        digest = hashlib.sha256(f"{digest} {sizes}".encode()).hexdigest()
    return selected_hash(digest, only)


def _rows(
    path: Path, wanted: Sequence[str], found: CaptionCollector
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the rows of a table, each with its place."""
    if path.suffix == ".parquet":
        yield from _parquet_rows(path, wanted, found)
        return
    for line, row in listing_rows(path, found.note):
        yield f"{path}, line {line}", row


def _parquet_rows(
    path: Path, wanted: Sequence[str], found: CaptionCollector
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with optional_import("pyarrow", extra="images"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    number = 0
    try:
        # Without a buffer ahead, a large file is never in memory as a whole.
        with pq.ParquetFile(require_regular(path), pre_buffer=False) as file:
            types = dict(zip(file.schema_arrow.names, file.schema_arrow.types, strict=True))
            require_columns(wanted, types, str(path))
            _check_types(path, types, found.columns)
            columns = list(dict.fromkeys(wanted))
            for batch in file.iter_batches(batch_size=ROWS, columns=columns):
                for row in decoded_rows(batch):
                    number += 1
                    place = f"{path}, row {number}"
                    if isinstance(row, UnicodeDecodeError):
                        found.undecodable(place, row)
                    else:
                        yield place, row
    # The last three: what Python cannot hold, such as dates beyond the year 9999.
    except (pa.ArrowException, OSError, ValueError, OverflowError, KeyError) as error:
        raise DataError(f"{path} cannot be read as parquet: {error}.") from error


IMAGES = ("binary", "large_binary", "binary_view", "null")
TEXTS = ("string", "large_string", "string_view", "null")


def _check_types(path: Path, types: Mapping[str, Any], columns: CaptionColumns) -> None:
    """Refuse columns of other types than images and texts, before any row is read."""
    image = _plain(types[columns.image])
    if image not in (*IMAGES, *TEXTS) and not image.startswith("struct"):
        raise DataError(
            f"{path}: {columns.image} holds {image}, not images: bytes, paths, or a struct of both."
        )
    for name in columns.names:
        kind = _plain(types[name])
        if kind not in TEXTS and _plain(getattr(types[name], "value_type", None)) not in TEXTS:
            raise DataError(f"{path}: {name} holds {kind}, not texts or lists of texts.")


def _plain(kind: Any) -> str:
    """Name a type of a column; of one with numbered values that of the values."""
    return str(kind.value_type if str(kind).startswith("dictionary") else kind)


def read_captioned_hub(
    name: str,
    columns: CaptionColumns,
    *,
    only: Selection | None = None,
    report: Report = refuse,
) -> CaptionedImages:
    """Read a data set that `open_hub` opens, with its errors.

    Raises:
        DataError: the data set has no such columns, or nothing that can be used.
    """
    rows = open_hub(name)
    from datasets import Image

    wanted = [*columns.names, *([only.column] if only else [])]
    require_columns([columns.image, *wanted], rows.column_names, name)
    rows = rows.cast_column(columns.image, Image(decode=False))
    found, select = CaptionCollector(columns, report), Selector(only)
    for index, row in enumerate(rows.select_columns(wanted)):
        if select(row):
            found.add(f"{name}, row {index + 1}", index, columns.pick(row))
    select.require_rows(name)
    digest = hashlib.sha256(str(getattr(rows, "_fingerprint", name)).encode()).hexdigest()
    return found.finish(
        lambda index: read_cell(rows[index][columns.image], Path()),
        origin=f"{name}{only or ''}",
        hashes=(selected_hash(digest, only),),
    )
