"""Translate documents, with their structure and placeholders kept."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from fastapi import APIRouter
from fastapi import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from manyheads.asks.request import Answer, Request
from manyheads.asks.translate_request import TranslateRequest
from manyheads.data.documents.document_formats import format_of
from manyheads.data.documents.glossary import Entry, Glossary
from manyheads.documents.document_translation import Document, translate_document, translate_file
from manyheads.errors import UsageError
from manyheads.strict_json import dumps
from manyheads.web.ask_queue import served, while_connected
from manyheads.web.document_sentences import UNPACKED, with_translator
from manyheads.web.problem_json import JsonResponse, described, problem, refusal
from manyheads.web.request_bodies import Body
from manyheads.web.served import Served, ServedModel

router = APIRouter(prefix="/api/v1/translate", tags=["texts"])


class DocumentBody(Request):
    """A document to translate."""

    text: str
    format: str = "text"  # text, markdown or html
    model: str | None = None
    source: str | None = None
    target: str | None = None
    glossary: dict[str, str] | None = None  # terms and their required translations
    stream: bool = False  # lines of JSON: how far it is, and at last the document
    lines: bool = False  # each line and each of its sentences, too


class SentenceAnswer(Answer):
    """A sentence, and how its translation came about: whole, guided, pieces or kept."""

    source: str
    translation: str
    how: str
    finished: bool
    notes: tuple[str, ...]


class LineAnswer(Answer):
    """A line that has something to translate, and its sentences in order."""

    number: int
    source: str
    translation: str
    sentences: tuple[SentenceAnswer, ...]


class DocumentAnswer(Answer):
    """A translated document."""

    model: str
    text: str
    notes: tuple[str, ...] = ()
    lines: tuple[LineAnswer, ...] | None = None  # if they were asked for


class FileQuery(Request):
    """How a file is translated."""

    format: str | None = None  # text, markdown, html, docx or xlsx; or by the two below
    name: str | None = None  # of the file: its ending tells the format; nothing is opened
    model: str | None = None
    source: str | None = None
    target: str | None = None
    stream: bool = False  # lines of JSON: how far it is, and at last the file in base64


class FileAnswer(Answer):
    """A translated file."""

    model: str
    content: str  # in base64
    notes: tuple[str, ...] = ()


_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}  # in a query
_OFFICE = "application/vnd.openxmlformats-officedocument"
_MEDIA = {  # content type and ending, by format
    "text": ("text/plain", "txt"),
    "markdown": ("text/markdown", "md"),
    "html": ("text/html", "html"),
    "docx": (f"{_OFFICE}.wordprocessingml.document", "docx"),
    "xlsx": (f"{_OFFICE}.spreadsheetml.sheet", "xlsx"),
}
_BY_MEDIA = {media: kind for kind, (media, _) in _MEDIA.items() if kind != "text"}

NOTES = "Manyheads-Notes"  # a header
MOST = 4096  # characters of a header

# With `stream`.
_LINES: dict[str, Any] = {"application/x-ndjson": {"schema": {"type": "string"}}}


def _file_openapi() -> dict[str, Any]:
    schema = {"schema": {"type": "string", "format": "binary"}}
    content = {media: schema for media, _ in _MEDIA.values()}
    example = {"example": "# Title\n\nA man is cleaning a window.\n"}
    sent = content | {"text/markdown": schema | example}
    return {
        "requestBody": {"required": True, "content": sent},
        "responses": {
            "200": {
                "description": "The translated file.",
                "headers": {NOTES: {"description": "As JSON.", "schema": {"type": "string"}}},
                "content": content | _LINES,
            }
        },
        "parameters": [
            {"name": name, "in": "query", "required": False, "schema": each}
            for name, each in FileQuery.model_json_schema()["properties"].items()
        ],
    }


DOCUMENT = Body(
    TranslateRequest,
    DocumentBody,
    {"text": "# Title\n\nA man is cleaning a window.\n", "format": "markdown", "target": "de"},
    False,
)


@router.post(
    "/document",
    response_model=DocumentAnswer,
    openapi_extra=DOCUMENT.openapi(),
    responses={200: {"content": _LINES}},
)
async def document(http: HttpRequest) -> Response:
    """Translate a text, Markdown or HTML of any length; `stream` tells how far it is."""
    given: DocumentBody = await DOCUMENT.read(http)
    models = served(http)
    if len(given.text) > models.limits.document:
        raise refusal("document", most=models.limits.document, count=len(given.text))
    model = _model(models, given)
    terms = Glossary(Entry(*pair) for pair in given.glossary.items()) if given.glossary else None
    work = partial(translate_document, text=given.text, format=given.format, glossary=terms)

    def answer(translated: Document) -> dict[str, Any]:
        lines = None
        if given.lines:
            lines = tuple(LineAnswer(**asdict(line)) for line in translated.lines)
        notes, text = translated.notes, translated.text
        return DocumentAnswer(model=model.name, text=text, notes=notes, lines=lines).to_json()

    translate = partial(with_translator, models, model, work, len(given.text), lines=given.lines)
    if given.stream:
        return _streamed(http, translate, answer)
    translated = await while_connected(http, translate(), models.limits.document_answer)
    return JsonResponse(answer(translated))


@router.post("/file", response_class=Response, openapi_extra=_file_openapi())
async def file(http: HttpRequest) -> Response:
    """Translate a file: DOCX, XLSX, HTML, Markdown or text, which is the body.

    The answer is a file of the same format, with its notes in a header; `stream` gives lines of
    JSON instead: how far it is, and at last the file in base64, with notes.
    """
    sent: dict[str, Any] = dict(http.query_params)
    stream = sent.get("stream", "false")
    given = FileQuery(**sent | {"stream": _BOOLEANS.get(stream, stream)})
    models = served(http)
    model = _model(models, given)
    content = await http.body()
    if not content:
        raise UsageError("The body is empty: send the file as the body.")
    media = http.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media.startswith("multipart/"):
        raise refusal("form_of_files", kind=media[:80])
    kind = given.format or _BY_MEDIA.get(media)
    if kind is None and not given.name and content.startswith(b"PK\x03\x04"):
        raise UsageError("The body is an archive, as DOCX and XLSX are: give its name, as a.docx.")
    kind = format_of(given.name or "", kind)

    work = partial(
        translate_file, content=content, name="The document", format=kind, unpacked=UNPACKED
    )

    def answer(translated: Document) -> dict[str, Any]:
        packed = base64.b64encode(translated.content).decode()
        return FileAnswer(model=model.name, content=packed, notes=translated.notes).to_json()

    translate = partial(with_translator, models, model, work, None)
    if given.stream:
        return _streamed(http, translate, answer)
    found = await while_connected(http, translate(), models.limits.document_answer)
    media, ending = _MEDIA[kind]
    headers = {"Content-Disposition": f"attachment; filename=translated.{ending}"}
    return Response(found.content, media_type=media, headers=headers | _header(found.notes))


def _header(notes: Sequence[str]) -> dict[str, str]:
    """Write notes into a header, as JSON in ASCII: as many as fit, and how many do not."""
    value = dumps(notes, ensure_ascii=True)
    for left in range(1, len(notes) + 1):
        if len(value) <= MOST:
            break
        more = f"Notes left out: {left}; streamed answers have all."
        value = dumps([*notes[:-left], more], ensure_ascii=True)
    return {NOTES: value} if notes else {}


def _model(models: Served, given: "DocumentBody | FileQuery") -> ServedModel:
    if given.model is not None:
        return models.find(given.model, TranslateRequest, verb="translate")
    return models.translator(given.source, given.target)


def _streamed(
    http: HttpRequest,
    translate: Callable[..., Coroutine[Any, Any, Document]],
    answer: Callable[[Document], dict[str, Any]],
) -> Response:
    steps = asyncio.Queue[dict[str, int] | None]()

    def progress(done: int, of: int) -> None:
        steps.put_nowait({"translated": done, "of": of})

    async def bounded() -> Document:
        """The response itself notices that the client leaves; here is the time limit."""
        seconds = served(http).limits.document_answer
        try:
            async with asyncio.timeout(seconds):
                return await translate(progress=progress)
        except TimeoutError:
            raise refusal("too_slow", seconds=seconds, retry_after=seconds / 4) from None

    content = _lines(asyncio.create_task(bounded()), steps, answer, http.url.path)
    return StreamingResponse(content, media_type="application/x-ndjson")


async def _lines(
    work: "asyncio.Task[Document]",
    steps: "asyncio.Queue[Any]",
    answer: Callable[[Document], dict[str, Any]],
    where: str,
) -> AsyncIterator[bytes]:
    """Write a line for each step, and one for the document; a client that leaves ends the work."""
    work.add_done_callback(lambda _: steps.put_nowait(None))
    try:
        while (step := await steps.get()) is not None:
            yield _line(step)
        try:
            yield _line(answer(work.result()))
        except Exception as error:
            yield bytes(problem(described(error), where).body) + b"\n"
    finally:
        work.cancel()


def _line(content: dict[str, Any]) -> bytes:
    return f"{dumps(content)}\n".encode("utf-8", "backslashreplace")
