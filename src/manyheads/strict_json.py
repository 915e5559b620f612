"""Write JSON that every program reads, without NaN and Infinity; read what anybody wrote."""

import json
import math
from functools import partial
from typing import Any


def dumps(
    value: Any,
    *,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    ensure_ascii: bool = False,
) -> str:
    """Write a value as JSON, like `json.dumps`; numbers that are not finite become null."""
    write = partial(
        json.dumps, indent=indent, separators=separators, ensure_ascii=ensure_ascii, allow_nan=False
    )
    try:
        return write(value)
    except ValueError:  # rare, so that the usual value is not copied
        return write(_finite(value))


def loads(text: str | bytes, **options: Any) -> Any:
    """Read JSON, like `json.loads`, with its options.

    Raises:
        ValueError: it is not JSON, not UTF-8, or nested too deeply for Python.
    """
    try:
        return json.loads(text, **options)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _finite(value: Any) -> Any:
    """Copy a value with None in place of numbers that are not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {_finite(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value
