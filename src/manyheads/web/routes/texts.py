"""Translate, continue, fill in and space texts."""

from typing import Any

from fastapi import APIRouter
from fastapi import Request as HttpRequest
from starlette.responses import Response

from manyheads.asks.fill_request import FillAnswer, FillRequest
from manyheads.asks.generate_request import GenerateAnswer, GenerateRequest
from manyheads.asks.request import Answer, TextRequest
from manyheads.asks.tag_request import TagAnswer, TagRequest
from manyheads.asks.translate_request import TranslateAnswer, TranslateRequest
from manyheads.web.ask_queue import ask, served
from manyheads.web.request_bodies import Body, answered, answers_of, body, check_limits
from manyheads.web.served import ServedModel

router = APIRouter(prefix="/api/v1", tags=["texts"])

TRANSLATE = body(
    "TranslateBody",
    TranslateRequest,
    example={"texts": ["A man is cleaning a window."], "source": "en", "target": "de"},
    source=(str | None, None),
    target=(str | None, None),
)
Translations = answers_of("Translations", TranslateAnswer, inputs="text")


@router.post("/translate", response_model=Translations, openapi_extra=TRANSLATE.openapi())
async def translate(http: HttpRequest) -> Response:
    """Translate texts; `source` and `target` choose the model, or its name does."""
    given = await TRANSLATE.read(http)
    models = served(http)
    if given.model is None and (given.source or given.target):
        model = models.translator(given.source, given.target)
    else:
        model = models.find(given.model, TranslateRequest, verb="translate")
    return await _answer(http, TRANSLATE, given, model)


async def _answer(http: HttpRequest, kind: Body, given: Any, model: ServedModel) -> Response:
    request: TextRequest = kind.make(given)
    check_limits(request, served(http).limits)
    return answered(model.name, await ask(http, model, request))


def _add_route(name: str, verb: str, about: str, kind: Body, answers: type[Answer]) -> None:
    async def route(http: HttpRequest) -> Response:
        given = await kind.read(http)
        model = served(http).find(given.model, kind.request, verb=verb)
        return await _answer(http, kind, given, model)

    described: Any = {"response_model": answers, "openapi_extra": kind.openapi()}
    router.post(f"/{name}", name=name, description=about, **described)(route)


_add_route(
    "generate",
    "continue texts",
    "Continue texts.",
    body("GenerateBody", GenerateRequest, example={"texts": ["Once"], "tokens": 20}),
    answers_of("Continuations", GenerateAnswer, inputs="text"),
)
_add_route(
    "fill",
    "fill in masks",
    "Propose tokens for each mask of texts.",
    body("FillBody", FillRequest, example={"texts": ["a <mask> day"]}),
    answers_of("Fillings", FillAnswer, inputs="text"),
)
_add_route(
    "tag",
    "put spaces into texts",
    "Put spaces into Korean texts.",
    body("TagBody", TagRequest, example={"texts": ["아버지가방에들어가신다"]}),
    answers_of("Taggings", TagAnswer, inputs="text"),
)
