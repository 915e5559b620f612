"""Errors as problem+json (RFC 9457): what went wrong, where, and what helps."""

import json
import logging
import math
import re
import secrets
import tomllib
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from manyheads.errors import (
    DataError,
    FolderError,
    ManyheadsError,
    NotFoundError,
    OutOfMemoryError,
    UnreadableError,
    UsageError,
)
from manyheads.memory import is_out_of_memory
from manyheads.strict_json import dumps
from manyheads.web.worker_threads import WorkError, trail_of

LOG = logging.getLogger("manyheads.web")
MOST = 600  # characters of a detail, which may quote what was sent
REFUSALS = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text(encoding="utf-8"))

# How errors are described: of every path, with any status of 400 and more.
RESPONSES: dict[int | str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("problem_responses.json").read_text(encoding="utf-8")
)


class ProblemError(Exception):
    """An answer other than the one that was asked for."""

    def __init__(
        self, status: int, title: str, detail: str, *, remedy: str, retry_after: float | None = None
    ) -> None:
        super().__init__(title)
        self.status, self.title, self.detail, self.remedy = status, title, detail, remedy
        self.retry_after = retry_after


def refusal(name: str, /, *, retry_after: float | None = None, **values: Any) -> ProblemError:
    """Make the problem that `refusals.toml` describes, with values in its text."""
    parts = {"retry_after": retry_after, **REFUSALS[name]}
    for part in ("detail", "remedy"):
        parts[part] = parts[part].format(**values)
    return ProblemError(**parts)


class JsonResponse(Response):
    """JSON that every program reads; lone surrogates are escaped."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Write the content."""
        return dumps(content, separators=(",", ":")).encode("utf-8", "backslashreplace")


def problem(error: ProblemError, where: str) -> Response:
    """Write a problem as a response."""
    detail = error.detail if len(error.detail) <= MOST else f"{error.detail[:MOST]}…"
    named = re.search(r"`([a-z_]+)(?:=[^`]*)?`", detail)
    content = {
        "type": "about:blank",
        "title": error.title,
        "status": error.status,
        "detail": detail,
        "where": named[1] if named else where,
        "remedy": error.remedy,
        # What clients of LibreTranslate and DeepL show.
        "error": detail,
        "message": detail,
    }
    response = JsonResponse(content, error.status, media_type="application/problem+json")
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if error.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def described(error: BaseException) -> ProblemError:
    """Say what an error means to a client."""
    match error:
        case ProblemError():
            return error
        case UnreadableError():
            return refusal("unreadable_image", reason=error.reason)
        case NotFoundError():
            return refusal("not_found", reason=error)
        case UsageError():
            return refusal("invalid", reason=error)
        case DataError():
            return refusal("unusable_data", reason=error)
        case HTTPException():
            remedy = "GET /openapi.json lists the paths and their methods."
            title = str(error.detail)
            return ProblemError(error.status_code, title, f"{title}.", remedy=remedy)
    number = secrets.token_hex(4)
    if isinstance(error, WorkError):  # of another process
        trail, memory = error.trail, error.out_of_memory
    else:
        # The message only if it cannot hold a client's text.
        trail = f"{trail_of(error)}: {error}" if isinstance(error, FolderError) else trail_of(error)
        memory = isinstance(error, OutOfMemoryError) or is_out_of_memory(error)
    LOG.error("error %s: %s", number, trail)
    if memory:
        return refusal("out_of_memory", number=number)
    unusable = isinstance(error, FolderError)
    return refusal("unusable_model" if unusable else "internal", number=number)


def add_handlers(app: FastAPI) -> None:
    """Answer every error with a problem."""

    async def handle(request: Request, error: Exception) -> Response:
        return problem(described(error), request.url.path[:200])

    for kind in (ProblemError, ManyheadsError, HTTPException, Exception):
        app.add_exception_handler(kind, handle)
