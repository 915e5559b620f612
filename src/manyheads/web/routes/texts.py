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
from manyheads.web.asking import ask, served
from manyheads.web.bodies import Body, body, check_limits
from manyheads.web.problems import JsonResponse
from manyheads.web.served import ServedModel

router = APIRouter(prefix="/api/v1", tags=["texts"])

TRANSLATE = body(
    "TranslateBody",
    TranslateRequest,
    example={"texts": ["A man is cleaning a window."], "source": "en", "target": "de"},
    source=(str | None, None),
    target=(str | None, None),
)
GENERATE = body("GenerateBody", GenerateRequest, example={"texts": ["Once"], "tokens": 20})
FILL = body("FillBody", FillRequest, example={"texts": ["a <mask> day"]})
TAG = body("TagBody", TagRequest, example={"texts": ["아버지가방에들어가신다"]})


class Translations(Answer):
    """An answer for each text, in order."""

    model: str
    answers: tuple[TranslateAnswer, ...]


class Continuations(Answer):
    """An answer for each text, in order."""

    model: str
    answers: tuple[GenerateAnswer, ...]


class Fillings(Answer):
    """An answer for each text, in order."""

    model: str
    answers: tuple[FillAnswer, ...]


class Taggings(Answer):
    """An answer for each text, in order."""

    model: str
    answers: tuple[TagAnswer, ...]


@router.post("/translate", response_model=Translations, openapi_extra=TRANSLATE.openapi())
async def translate(http: HttpRequest) -> Response:
    """Translate texts; `source` and `target` choose the model, or its name does."""
    given = await TRANSLATE.read(http)
    models = served(http)
    if given.model is None and (given.source or given.target):
        model = models.translator(TranslateRequest, given.source, given.target)
    else:
        model = models.find(given.model, TranslateRequest, verb="translate")
    return await _answer(http, TRANSLATE, given, model)


@router.post("/generate", response_model=Continuations, openapi_extra=GENERATE.openapi())
async def generate(http: HttpRequest) -> Response:
    """Continue texts."""
    given = await GENERATE.read(http)
    model = served(http).find(given.model, GenerateRequest, verb="continue texts")
    return await _answer(http, GENERATE, given, model)


@router.post("/fill", response_model=Fillings, openapi_extra=FILL.openapi())
async def fill(http: HttpRequest) -> Response:
    """Propose tokens for each mask of texts."""
    given = await FILL.read(http)
    model = served(http).find(given.model, FillRequest, verb="fill in masks")
    return await _answer(http, FILL, given, model)


@router.post("/tag", response_model=Taggings, openapi_extra=TAG.openapi())
async def tag(http: HttpRequest) -> Response:
    """Put spaces into Korean texts."""
    given = await TAG.read(http)
    model = served(http).find(given.model, TagRequest, verb="put spaces into texts")
    return await _answer(http, TAG, given, model)


async def _answer(http: HttpRequest, kind: Body, given: Any, model: ServedModel) -> Response:
    request: TextRequest = kind.make(given)
    check_limits(request, served(http).limits)
    answers = await ask(http, model, request)
    return JsonResponse({"model": model.name, "answers": [each.to_json() for each in answers]})
