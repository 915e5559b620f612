"""Rows of parquet files, one by one, although some may hold texts that are not UTF-8."""

from collections.abc import Iterator
from itertools import chain
from typing import Any


def decoded_rows(batch: Any) -> Iterator[dict[str, Any] | UnicodeDecodeError]:
    """Yield the rows of a batch; for a row that is not UTF-8, the error."""
    try:
        rows = batch.to_pylist()
    except UnicodeDecodeError as error:
        if batch.num_rows == 1:
            yield error
            return
        rows = chain.from_iterable(
            decoded_rows(batch.slice(row, 1)) for row in range(batch.num_rows)
        )
    yield from rows
