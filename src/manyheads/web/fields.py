"""The fields of a body: JSON, or a form."""

import asyncio
import json
from typing import Any
from urllib.parse import parse_qsl

from manyheads.web.problems import ProblemError

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
FIELDS = 1000  # of a body
ENTRIES = 10_000  # of one of them: checking each costs more than reading it
# Signs between values in JSON, also those in texts: a document may have half a million of them.
# `json` does not let other threads run while it reads, some 0.1 s for this many.
SIGNS = 600_000
SMALL = 1 << 16  # bytes that are read at once; more is read by another thread


async def read_fields(body: bytes, content_type: str) -> dict[str, Any]:
    """Read the fields of a body; while a large one is read, other requests are answered.

    Raises:
        ProblemError: of `fields`.
    """
    if len(body) <= SMALL:
        return fields(body, content_type)
    return await asyncio.to_thread(fields, body, content_type)


def fields(body: bytes, content_type: str) -> dict[str, Any]:
    """Read the fields of a JSON object or of a form; of a form, what is repeated is a list.

    Raises:
        ProblemError: it is neither, damaged, or has too many fields or entries.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == FORM:
        return _form(body)
    if kind and kind != JSON and not kind.endswith("+json"):
        raise ProblemError(
            415,
            "Another content type",
            f"The body is {kind[:80]}.",
            remedy="Send JSON with the header Content-Type: application/json.",
        )
    if sum(map(body.count, (b",", b":", b"[", b"{"))) > SIGNS:
        raise _too_large(f"A body may have {SIGNS:,} commas, colons and brackets; it has more.")
    try:
        found = json.loads(body.decode("utf-8") if body else "{}", parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reason = {
            "UnicodeDecodeError": "it is not UTF-8",
            "RecursionError": "it is nested too deep",
        }
        told = reason.get(type(error).__name__, "it is not JSON")
        raise _damaged(f"The body cannot be read: {told}.") from None
    if not isinstance(found, dict):
        raise _damaged("The body is not a JSON object.")
    if len(found) > FIELDS:
        raise _too_large(f"A request may have {FIELDS:,} parameters; it has {len(found):,}.")
    for name, value in found.items():
        if isinstance(value, list | dict) and len(value) > ENTRIES:
            raise _too_large(
                f"A parameter may have {ENTRIES:,} entries; {name[:80]} has {len(value):,}."
            )
    return found


def _form(body: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS
        )
    except ValueError:
        raise _damaged("The form cannot be read: it is not UTF-8, or too long.") from None
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            before = found[name] if isinstance(found[name], list) else [found[name]]
            found[name] = [*before, value]
        else:
            found[name] = value
    return found


def _damaged(detail: str) -> ProblemError:
    return ProblemError(400, "Unreadable body", detail, remedy="Send one JSON object in UTF-8.")


def _too_large(detail: str) -> ProblemError:
    return ProblemError(413, "Too large", detail, remedy="Send less at a time.")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
