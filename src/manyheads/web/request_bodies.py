"""Bodies of requests: the parameters of `asks/` with the name of a model.

An image is never a path here: it is sent as base64 in JSON, or as the whole body with parameters in
the query.
"""

import asyncio
import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import Request as HttpRequest
from pydantic import create_model

from manyheads.asks.request import Answer, BatchRequest, Request
from manyheads.errors import UnreadableError, UsageError
from manyheads.web.body_fields import JSON, read_fields
from manyheads.web.problem_json import JsonResponse, refusal
from manyheads.web.request_images import EncodedImage
from manyheads.web.settings import Limits

IMAGES = ("application/octet-stream", "image/")  # content types of a body that is one image
# Parameters of requests that a client cannot give: paths, and what is made of the body.
PRIVATE = ("images", "given", "kind", "integrated")


class Body(NamedTuple):
    """What the body of a request may hold, and how it is described."""

    request: type[Request]  # of asks/
    model: type[Request]  # that of HTTP
    example: Mapping[str, Any]
    uploads: bool  # may also be one image

    def openapi(self) -> dict[str, Any]:
        """Describe it."""
        schema = self.model.model_json_schema()
        content: dict[str, Any] = {JSON: {"schema": schema, "example": dict(self.example)}}
        described: dict[str, Any] = {"requestBody": {"required": True, "content": content}}
        if self.uploads:
            content["image/*"] = {"schema": {"type": "string", "format": "binary"}}
            described["parameters"] = [
                {"name": name, "in": "query", "required": False, "schema": each}
                for name, each in schema["properties"].items()
                if name not in ("image", "images")
            ]
        return described

    async def read(self, http: HttpRequest) -> Any:
        """Read and validate the body of a request.

        Raises:
            ProblemError: it is not JSON, nor an image where one may be sent.
            UsageError: a parameter is unknown, missing or wrong.
        """
        kind = http.headers.get("content-type", "").lower()
        content = await http.body()
        if self.uploads and kind.startswith(IMAGES):
            given = {name: _value(text) for name, text in http.query_params.items()}
            several = "images" in self.model.model_fields
            encoded = base64.b64encode(content).decode()
            name = "images" if several else "image"
            return self.model(**given | {name: [encoded] if several else encoded})
        if self.uploads and kind.startswith("multipart/"):
            raise refusal("form_of_images", kind=kind.partition(";")[0][:80])
        return self.model(**await read_fields(content, kind))

    def make(self, body: Any, **parameters: Any) -> Any:
        """Make the request that a body stands for."""
        own = {
            name: getattr(body, name)
            for name in self.request.model_fields
            if name in type(body).model_fields and name not in PRIVATE
        }
        return self.request(**own | parameters)


def body(name: str, request: type[Request], *, example: Mapping[str, Any], **added: Any) -> Body:
    """Make the body of a request; `added` are further parameters: (type, default)."""
    own: dict[str, Any] = {
        key: (field.rebuild_annotation(), field)
        for key, field in request.model_fields.items()
        if key not in PRIVATE and key not in added
    }
    added = {"model": (str | None, None), **added}
    model = create_model(name, __base__=Request, **added, **own)
    return Body(request, model, example, "images" in added or "image" in added)


def answers_of(name: str, answer: type[Answer], *, inputs: str = "image") -> Any:
    """Make the type of what HTTP answers: a model's answers, for as many inputs."""
    several: Any = tuple[answer, ...]  # type: ignore[valid-type]
    about = f"An answer for each {inputs}, in order."
    return create_model(
        name, __base__=Answer, __doc__=about, model=(str, ...), answers=(several, ...)
    )


def answered(model: str, answers: Sequence[Answer]) -> JsonResponse:
    """Write what `answers_of` describes."""
    return JsonResponse({"model": model, "answers": [answer.to_json() for answer in answers]})


def _value(text: str) -> Any:
    """Read a value of a query: a number, true, false, null, a list; or a text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, dict) else value


def check_texts(texts: Sequence[str], limits: Limits) -> None:
    """Refuse too many texts, or too long ones."""
    if len(texts) > limits.inputs:
        raise refusal("inputs", most=limits.inputs, count=len(texts))
    if (length := sum(map(len, texts))) > limits.characters:
        raise refusal("characters", most=limits.characters, count=length)


def check_limits(request: BatchRequest, limits: Limits) -> None:
    """Refuse a request that costs too much.

    Raises:
        ProblemError: too many texts, or too long ones.
        UsageError: a parameter is above its limit, such as too many beams.
    """
    check_texts(request.all_texts, limits)
    for name, limit in request.limited.items():
        value, most = getattr(request, name), getattr(limits, limit)
        unit = ""
        if isinstance(value, str):
            value, unit = len(value), " characters"
        if value is not None and value > most:
            raise UsageError(f"`{name}` is {value:,}{unit}: this server allows {most:,}.")


async def encoded_images(encoded: Sequence[str], limits: Limits) -> tuple[EncodedImage, ...]:
    """Read images in base64, off the event loop; a worker decodes them.

    Raises:
        ProblemError: too many.
        UnreadableError: one is not an image of an allowed format, or too large.
    """
    if len(encoded) > limits.inputs:
        raise refusal("inputs", most=limits.inputs, count=len(encoded))
    return await asyncio.to_thread(_read_all, encoded, limits.pixels)


def _read_all(encoded: Sequence[str], allowed: int) -> tuple[EncodedImage, ...]:
    images: list[EncodedImage] = []
    for number, text in enumerate(encoded, 1):
        name = f"image {number}"
        if text.startswith("data:"):
            text = text.partition(",")[2]
        try:
            content = base64.b64decode(text, validate=True)
        except ValueError:
            raise UnreadableError(name, "it is not base64; paths are not read here") from None
        images.append(EncodedImage.read(name, content, allowed))
        if sum(image.pixels for image in images) > allowed:
            raise UnreadableError(
                name, f"the images of a request may have {allowed:,} pixels together"
            )
    return tuple(images)
