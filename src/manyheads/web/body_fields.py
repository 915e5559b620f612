"""The fields of a body: JSON, or a form."""

import asyncio
import json
from typing import Any
from urllib.parse import parse_qs

from manyheads.web.problem_json import refusal

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
FIELDS = 1000  # of a body
ENTRIES = 10_000  # of one of them: checking each costs more than reading it
# Signs between values in JSON, also those in texts: a document may have half a million of them.
# `json` does not let other threads run while it reads, some 0.1 s for this many.
SIGNS = 600_000
SMALL = 1 << 16  # bytes that are read at once; more is read by another thread


async def read_fields(body: bytes, content_type: str) -> dict[str, Any]:
    """Read a body as `fields` does; while a large one is read, other requests are answered."""
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
        raise refusal("content_type", kind=kind[:80])
    if sum(map(body.count, (b",", b":", b"[", b"{"))) > SIGNS:
        raise refusal("signs", most=SIGNS)
    try:
        sent = json.loads(body.decode("utf-8") if body else "{}", parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reasons = {
            "UnicodeDecodeError": "it is not UTF-8",
            "RecursionError": "it is nested too deep",
        }
        reason = reasons.get(type(error).__name__, "it is not JSON")
        raise refusal("unreadable_body", reason=f"The body cannot be read: {reason}.") from None
    if not isinstance(sent, dict):
        raise refusal("unreadable_body", reason="The body is not a JSON object.")
    if len(sent) > FIELDS:
        raise refusal("parameters", most=FIELDS, count=len(sent))
    for name, value in sent.items():
        if isinstance(value, list | dict) and len(value) > ENTRIES:
            raise refusal("entries", most=ENTRIES, name=name[:80], count=len(value))
    return sent


def _form(body: bytes) -> dict[str, Any]:
    try:
        fields = parse_qs(
            body.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS
        )
    except ValueError:
        raise refusal(
            "unreadable_body", reason="The form cannot be read: it is not UTF-8, or too long."
        ) from None
    return {name: own[0] if len(own) == 1 else own for name, own in fields.items()}


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
