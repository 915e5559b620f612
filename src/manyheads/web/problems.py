"""Errors as problem+json (RFC 9457): what went wrong, where, and what helps."""

import logging
import math
import re
import secrets
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
from manyheads.web.workers import WorkError, trail_of

LOG = logging.getLogger("manyheads.web")
MOST = 600  # characters of a detail, which may quote what was sent
MEDIA = "application/problem+json"


_TEXT = {"type": "string"}
# How errors are described: of every path, with any status of 400 and more.
RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": (
            "400 and 422: the request is wrong. 401 and 403: no access. 404: no such model. 408, "
            "413 and 415: the body is too slow, too large, or of another type. 429 and 503: try "
            "again after the seconds of Retry-After. 501: only one process can do it."
        ),
        "content": {
            MEDIA: {
                "schema": {
                    "type": "object",
                    "properties": dict.fromkeys(
                        ("type", "title", "detail", "where", "remedy", "error", "message"), _TEXT
                    )
                    | {"status": {"type": "integer"}},
                    "required": ["title", "status", "detail", "where", "remedy"],
                }
            }
        },
    }
}


class ProblemError(Exception):
    """An answer other than the one that was asked for."""

    def __init__(
        self, status: int, title: str, detail: str, *, remedy: str, retry_after: float | None = None
    ) -> None:
        super().__init__(title)
        self.status, self.title, self.detail, self.remedy = status, title, detail, remedy
        self.retry_after = retry_after


def process_ended(does: str) -> ProblemError:
    """Say that a process ended; `does` is what it is for."""
    return ProblemError(
        503,
        "A process ended",
        f"The process that {does} ended while it worked; it is started again.",
        remedy="Try again after the seconds that Retry-After names.",
        retry_after=5,
    )


def model_changed(model: str) -> ProblemError:
    """Say that the folder of a model was written anew."""
    return ProblemError(
        503,
        "The model has changed",
        f"The files of {model} were written anew; it is loaded again.",
        remedy="Try again.",
        retry_after=1,
    )


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
    found = JsonResponse(content, error.status, media_type=MEDIA)
    if error.retry_after is not None:
        found.headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if error.status == 401:
        found.headers["WWW-Authenticate"] = "Bearer"
    return found


def described(error: BaseException) -> ProblemError:
    """Say what an error means to a client."""
    match error:
        case ProblemError():
            return error
        case UnreadableError():
            remedy = "Send a whole image as PNG, JPEG, WebP, GIF, BMP, TIFF, PPM or AVIF."
            reason = f"The image cannot be read: {error.reason}."
            return ProblemError(422, "Unreadable image", reason, remedy=remedy)
        case NotFoundError():
            remedy = "GET /api/v1/models lists what is served."
            return ProblemError(404, "Not found", str(error), remedy=remedy)
        case UsageError():
            remedy = "Correct the request; GET /openapi.json describes it."
            return ProblemError(400, "Invalid request", str(error), remedy=remedy)
        case DataError():
            remedy = "Correct the data that were sent."
            return ProblemError(422, "Unusable data", str(error), remedy=remedy)
        case HTTPException():
            remedy = "GET /openapi.json lists the paths and their methods."
            return ProblemError(error.status_code, str(error.detail), "", remedy=remedy)
    number = secrets.token_hex(4)
    if isinstance(error, WorkError):  # of another process
        told, memory = error.trail, error.out_of_memory
    else:
        told, memory = _trail(error), isinstance(error, OutOfMemoryError) or is_out_of_memory(error)
    LOG.error("error %s: %s", number, told)
    if memory:
        remedy = "Send fewer or shorter inputs, with fewer beams."
        return ProblemError(503, "Out of memory", f"Error {number}.", remedy=remedy, retry_after=5)
    title = "A model cannot be used" if isinstance(error, FolderError) else "Internal error"
    remedy = f"Ask who runs the server: its log tells about error {number}."
    return ProblemError(500, title, f"Error {number}.", remedy=remedy)


def _trail(error: BaseException) -> str:
    """Where an error was raised; its message only if it cannot hold a client's text."""
    return f"{trail_of(error)}: {error}" if isinstance(error, FolderError) else trail_of(error)


def add_handlers(app: FastAPI) -> None:
    """Answer every error with a problem."""

    async def handle(request: Request, error: Exception) -> Response:
        return problem(described(error), request.url.path[:200])

    for kind in (ProblemError, ManyheadsError, HTTPException, Exception):
        app.add_exception_handler(kind, handle)
