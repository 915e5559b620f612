"""Images with texts in tables: .parquet, .csv, .tsv, .jsonl, or a data set on the hub.

A row has an image and its texts. Rows with the same path are one image, with the texts of all rows.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from manyheads.data.images.caption_collector import KEYS, CaptionCollector, CaptionColumns
from manyheads.data.images.captioned_images import CaptionedImages
from manyheads.data.images.cell_store import IN_MEMORY, CellStore
from manyheads.data.images.image_file import ImageContent, open_content, read_cell, read_content
from manyheads.data.regular_files import size_of
from manyheads.data.text.lines import Report, content_hash, refuse
from manyheads.data.text.rows import (
    TEXTS,
    column_type,
    open_hub_images,
    require_columns,
    table_rows,
)
from manyheads.errors import DataError
from manyheads.files import expand_user

# Types of columns of images in a .parquet.
IMAGES = ("binary", "large_binary", "binary_view", "null")


def read_caption_tables(
    paths: Sequence[Path],
    columns: CaptionColumns,
    *,
    folder: Path | None = None,
    report: Report = refuse,
) -> CaptionedImages:
    """Read tables of images and texts.

    Images in a .parquet are bytes, paths, or Hugging Face's struct of both; in other tables paths.
    Images that are bytes in files larger than memory are kept in a temporary file.

    Args:
        paths: tables of one kind.
        columns: where images and texts are.
        folder: what paths of images are relative to; None: the folder of their table.
        report: called with each image or text that cannot be used.

    Raises:
        MissingExtraError: pyarrow is not installed.
        DataError: a file cannot be read, has no such columns, or nothing that can be used.
    """
    origin = ", ".join(map(str, paths))
    found, store = CaptionCollector(columns, report), CellStore(IN_MEMORY)
    wanted = [columns.image, *columns.wanted]
    hashes, seen = [], dict[str, None]()
    for path in paths:

        def choose(types: Mapping[str, Any], path: Path = path) -> list[str]:
            require_columns(wanted, types, str(path), KEYS)
            _check_types(path, types, columns)
            return wanted

        sizes = list[int]()
        for _, place, row in table_rows(path, choose, report):
            if path.suffix != ".jsonl":  # of which every row has its own keys
                require_columns(wanted, row, str(path), KEYS)
            seen |= dict.fromkeys(row)
            if not found.selects(row):
                continue
            content = _content(row[columns.image]) if columns.image in row else None
            if content is None:
                cell = f"{columns.image} is {row.get(columns.image)!a:.50}"
                found.leave_out("no-image", place, f"{cell}, neither an image nor a path")
            elif isinstance(content, bytes):
                found.add(place, store.add(content), columns.pick(row))
            else:
                at = (folder or path.parent) / expand_user(content)
                sizes.append(size_of(at))
                found.add(str(at), at, columns.pick(row), place=place, key=str(at))
        digest = content_hash(path)
        if path.suffix != ".parquet" or sizes:  # of images that are files of their own
            digest = hashlib.sha256(f"{digest} {sizes}".encode()).hexdigest()
        hashes.append(digest)
    if seen:
        require_columns(wanted, seen, origin, KEYS)

    def read(cell: int | Path) -> ImageContent:
        return open_content(read_content(cell) if isinstance(cell, Path) else store[cell])

    return found.finish(read, origin=origin, hashes=tuple(hashes))


def _content(cell: object) -> bytes | str | None:
    """Return the bytes or the path in a cell, if it has either."""
    if isinstance(cell, Mapping):
        cell = cell.get("bytes") or cell.get("path")
    return cell if isinstance(cell, bytes | str) and cell else None


def _check_types(path: Path, types: Mapping[str, Any], columns: CaptionColumns) -> None:
    """Refuse columns of other types than images and texts, before any row is read."""
    image = column_type(types[columns.image])
    if image not in (*IMAGES, *TEXTS) and not image.startswith("struct"):
        raise DataError(
            f"{path}: {columns.image} holds {image}, not images: bytes, paths, or a struct of both."
        )
    for name in columns.names:
        kind = column_type(types[name])
        if kind not in TEXTS and column_type(getattr(types[name], "value_type", None)) not in TEXTS:
            raise DataError(f"{path}: {name} holds {kind}, not texts or lists of texts.")


def read_captioned_hub(
    name: str, columns: CaptionColumns, report: Report = refuse
) -> CaptionedImages:
    """Read a data set that `open_hub` opens, with its errors.

    Raises:
        DataError: the data set has no such columns, or nothing that can be used.
    """
    rows, digest = open_hub_images(name, columns.image, columns.wanted, KEYS)
    found = CaptionCollector(columns, report)
    for index, row in enumerate(rows.select_columns(columns.wanted)):
        if found.selects(row):
            found.add(f"{name}, row {index + 1}", index, columns.pick(row))
    return found.finish(
        lambda index: read_cell(rows[index][columns.image], Path()), origin=name, hashes=(digest,)
    )
