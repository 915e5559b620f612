"""Tables of texts in parquet files: read, translated row by row, written."""

import glob
import io
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from manyheads.asks.decode_config import DecodeConfig
from manyheads.data.documents.glossary import Glossary
from manyheads.data.documents.segments import split_document
from manyheads.data.text.lines import refuse
from manyheads.data.text.rows import TEXTS, column_type, parquet_rows
from manyheads.documents.document_translation import Document, SentenceTranslator, translate_blocks
from manyheads.documents.fallbacks import FallbackTranslator, TextTranslator
from manyheads.errors import NotFoundError, UsageError, nearest, optional_import
from manyheads.predict.text_reader import one_line
from manyheads.project.remote import fetch_remote, is_remote

ENDING = ".parquet"
_ROWS = 10_000  # read at a time


def is_table(name: str) -> bool:
    """Tell whether a name is that of a table, or a pattern of tables."""
    return name.lower().endswith(ENDING)


def translate_table(
    translator: TextTranslator,
    name: str,
    *,
    column: str | None = None,
    glossary: Glossary | None = None,
    options: DecodeConfig | None = None,
    seed: int = 1,
    through: Callable[[FallbackTranslator], SentenceTranslator] | None = None,
) -> Document:
    """Translate a column of parquet files; the answer has one line for each row, in order.

    The lines of a row's text are translated one by one. A row without a text is an empty one.

    `name` is that of a file, or a pattern of files with *, which are read in the order of their
    names; also s3://, gs:// and others, which are copied here first (`remote.py`). `column` has the
    texts; if None the one named as the model's source language, or "text", or the only one that
    holds texts. The other arguments are as in `translate_file`.

    Raises:
        NotFoundError: there is no such file.
        DataError: a file is damaged.
        UsageError: it is not clear which column to translate.
    """
    texts = list(read_texts(name, column, translator.source))
    own = FallbackTranslator(translator, glossary, options, seed)
    fallbacks = own if through is None else through(own)
    rows = (chain.from_iterable(split_document(text, translator.source)) for text in texts)
    blocks = translate_blocks(fallbacks, [list(row) for row in rows])
    lines = tuple(block.line(number) for number, block in enumerate(blocks, 1))
    written = "".join(f"{one_line(line.translation)}\n" for line in lines)
    return Document(written, lines, written.encode(), "row")


def table_of(document: Document) -> bytes:
    """Write a document as a parquet file with the columns `source` and `translation`."""
    with optional_import("pyarrow", extra="text"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    table = pa.table(
        {
            "source": pa.array((line.source for line in document.lines), pa.string()),
            "translation": pa.array((line.translation for line in document.lines), pa.string()),
        }
    )
    content = io.BytesIO()
    pq.write_table(table, content, compression="zstd")
    return content.getvalue()


def matches(name: str) -> list[str]:
    """List what a pattern with * matches on this machine, by name; any other name is itself."""
    # Not pathlib's: a pattern may begin at the root, or with "..".
    return sorted(glob.glob(name, recursive=True)) if glob.has_magic(name) else [name]  # noqa: PTH207


def read_texts(name: str, column: str | None, language: str) -> Iterator[str]:
    """Read the texts of a column, file after file."""
    for path in _find(name):
        shown = _shown(name, path)
        choose = partial(_columns, shown, column, language)
        rows = parquet_rows(Path(path), choose, refuse, size=_ROWS, extra="text", name=shown)
        for _, _, cells in rows:
            (text,) = cells.values()
            while isinstance(text, Mapping):  # "translation.en"
                (text,) = text.values()
            yield text or ""


def _find(name: str) -> list[str]:
    found = map(str, fetch_remote(name, ("",))) if is_remote(name) else matches(name)
    paths = [path for path in found if Path(path).is_file()]
    if not paths:
        raise NotFoundError(
            f"There is no file {name}. Name a .parquet file, or several with a pattern in quotes: "
            "'folder/*.parquet'."
        )
    return paths


def _shown(name: str, path: str) -> str:
    """Name a file for the user: of a copy, the address that was given."""
    if not is_remote(name):
        return path
    return f"{name} ({Path(path).name})" if "*" in name else name


def _columns(path: str, column: str | None, language: str, types: Mapping[str, Any]) -> list[str]:
    def leaves(name: str, kind: Any) -> Iterator[tuple[str, Any]]:
        if str(kind).startswith("struct"):
            for field in kind:
                yield from leaves(f"{name}.{field.name}", field.type)
        else:
            yield name, kind

    kinds = dict(leaf for name, kind in types.items() for leaf in leaves(name, kind))
    texts = [name for name, kind in kinds.items() if column_type(kind) in set(TEXTS) - {"null"}]
    if column is None:
        usual = [name for name in (language, f"translation.{language}", "text") if name in texts]
        if usual or len(texts) == 1:
            return (usual or texts)[:1]
        raise UsageError(
            f"{path} has {'several' if texts else 'no'} columns of texts"
            f"{': ' + ', '.join(texts) if texts else ''}. Name the one to translate with `column`."
        )
    if column not in kinds:
        raise UsageError(
            f"{path} has no `column` {column!r}{nearest(column, kinds)}Columns: "
            f"{', '.join(kinds) or 'none'}."
        )
    if column not in texts:
        raise UsageError(
            f"{path}: the column {column!r} holds {kinds[column]}, not texts. Columns of texts: "
            f"{', '.join(texts) or 'none'}."
        )
    return [column]
