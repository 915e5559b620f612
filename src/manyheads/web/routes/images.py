"""Classify, describe and read images, and find them in an index."""

import asyncio
import base64
import io
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi import Request as HttpRequest
from PIL import Image
from starlette.responses import Response

from manyheads.asks.caption_request import CaptionAnswer, CaptionRequest
from manyheads.asks.classify_request import ClassifyAnswer, ClassifyRequest
from manyheads.asks.image_search_request import FoundImage, ImageSearchAnswer, ImageSearchRequest
from manyheads.asks.read_request import ReadAnswer, ReadRequest
from manyheads.asks.request import IMAGE_TOKENS, Answer, ImageRequest, Several
from manyheads.asks.translate_request import TranslateRequest
from manyheads.data.images.image_file import open_image
from manyheads.documents.fallbacks import TextTranslator
from manyheads.errors import ManyheadsError, NotFoundError, UsageError
from manyheads.image_search.image_index import ImageIndex
from manyheads.picture_translation import (
    check_language,
    check_translator,
    languages_read,
    read_answer,
    stays,
    translate_paragraphs,
    untranslated,
    with_language,
)
from manyheads.web.ask_queue import ask, job_of, served, while_connected
from manyheads.web.document_sentences import with_translator
from manyheads.web.problem_json import JsonResponse
from manyheads.web.request_bodies import (
    Body,
    answered,
    answers_of,
    body,
    check_limits,
    encoded_images,
)
from manyheads.web.request_images import EncodedImage, cost_of, room_for
from manyheads.web.served import Served, ServedModel
from manyheads.web.settings import Limits

router = APIRouter(prefix="/api/v1", tags=["images"])
THUMBNAIL = 192  # pixels of the longer side
THUMBNAILS = 60  # per query


def _png(image: Image.Image) -> str:
    content = io.BytesIO()
    image.save(content, "png")
    return base64.b64encode(content.getvalue()).decode()


SQUARE = _png(Image.new("RGB", (64, 64), "orange"))  # small enough for an example
SENT: dict[str, Any] = {"images": (Several[str], ())}

CLASSIFY = body("ClassifyBody", ClassifyRequest, example={"images": [SQUARE], "top": 3}, **SENT)
CAPTION = body("CaptionBody", CaptionRequest, example={"images": [SQUARE]}, **SENT)
READ = body("ReadBody", ReadRequest, example={"images": [SQUARE], "to": "en"}, **SENT)
SEARCH = body(
    "SearchBody",
    ImageSearchRequest,
    example={"queries": ["a smiling cat"], "top": 5},
    queries=(Several[str], ()),
    thumbnails=(bool, False),
    **SENT,
)

Classes = answers_of("Classes", ClassifyAnswer)
Captions = answers_of("Captions", CaptionAnswer)
Readings = answers_of("Readings", ReadAnswer)


class SeenImage(FoundImage):
    """An image that was found, and what it looks like."""

    thumbnail: str | None = None  # a data URL


class Found(ImageSearchAnswer):
    """The images for one query."""

    images: tuple[SeenImage, ...] | None = None


class Searches(Answer):
    """An answer for each query, texts before images."""

    answers: tuple[Found, ...]


@router.post("/classify", response_model=Classes, openapi_extra=CLASSIFY.openapi())
async def classify(http: HttpRequest) -> Response:
    """Classify images; of a matcher `labels` are the classes."""
    given = await CLASSIFY.read(http)
    models = served(http)
    name = given.model
    if name is None:
        # The first matcher for classes in words, else the first model with classes of its own.
        able = [each for each in models.models.values() if each.answers(ClassifyRequest)]
        words = bool(given.labels)
        name = next((each.name for each in able if each.predictor.zero_shot is words), None)
    model = models.find(name, ClassifyRequest, verb="classify images")
    return answered(model.name, await _ask(http, CLASSIFY, given, model))


@router.post("/caption", response_model=Captions, openapi_extra=CAPTION.openapi())
async def caption(http: HttpRequest) -> Response:
    """Write the text of images: what they show, or what is printed on them."""
    given = await CAPTION.read(http)
    model = served(http).find(
        _describer(served(http), given.model, reads=False), CaptionRequest, verb="describe images"
    )
    return answered(model.name, await _ask(http, CAPTION, given, model))


@router.post("/read", response_model=Readings, openapi_extra=READ.openapi())
async def read(http: HttpRequest) -> Response:
    """Read the text in images, and translate it if `to` names a language."""
    given = await READ.read(http)
    models = served(http)
    name = _describer(models, given.model, reads=True)
    reader = models.find(name, CaptionRequest, verb="read images")
    images = await _images(given, models.limits)
    work = _read(models, reader, READ.make(given, images=()), images)
    return answered(reader.name, await while_connected(http, work, models.limits.answer))


async def _read(
    models: Served, reader: ServedModel, asked: ReadRequest, images: Sequence[EncodedImage]
) -> list[ReadAnswer]:
    """Read images, then translate what was read, as `picture_translation.py` does."""
    translator, to = None, asked.to
    languages: tuple[str | None, ...] = ()
    if asked.to is not None or asked.translator is not None:
        # The language that the reader writes by itself; None: it does not tell.
        if reader.languages[0] is None and not reader.queue.facts:
            await reader.queue.load()
        reads = reader.languages[0] or next(iter(reader.queue.facts.get("languages") or ()), None)
        check_language(reader.name, reads, asked)
        if asked.translator is not None:
            translator = models.find(asked.translator, TranslateRequest, verb="translate")
            pair = translator.languages
            to = check_translator(translator.name, pair, asked, reader=reader.name, reads=reads)
            languages = pair[:1]
        else:
            languages = languages_read(reads)
            for each in languages:
                if not stays(each, to, languages):
                    models.translator(each, to)  # refused before anything is read
    captions = await reader.queue.ask(job_of(CaptionRequest(images=()), images))
    if to is None:
        return [read_answer(each, None, None) for each in captions]

    captions = [with_language(each, languages) for each in captions]
    found: dict[str | None, Iterator[ReadAnswer]] = {}
    for language in dict.fromkeys(each.language for each in captions):
        some = [each for each in captions if each.language == language]
        if all(each.text is None for each in some):  # could not be read
            found[language] = iter([read_answer(each, None, None) for each in some])
            continue
        if stays(language, to, languages):
            found[language] = iter([untranslated(each, to) for each in some])
            continue
        by = translator or models.translator(language, to)
        length = sum(len(each.text or "") for each in some)
        found[language] = iter(
            await with_translator(models, by, partial(_translate, some, to), length)
        )
    return [next(found[each.language]) for each in captions]


def _translate(
    captions: Sequence[CaptionAnswer], to: str | None, own: TextTranslator
) -> list[ReadAnswer]:
    return [read_answer(each, to, partial(translate_paragraphs, own)) for each in captions]


def _describer(models: Served, name: str | None, *, reads: bool) -> str | None:
    """Choose a model that reads one language, or one that describes."""
    if name is not None:
        return name
    able = [each for each in models.models.values() if each.answers(CaptionRequest)]
    able.sort(key=lambda each: (each.languages[0] is not None) is not reads)
    return able[0].name if able else None


async def _ask(http: HttpRequest, kind: Body, given: Any, model: ServedModel) -> list[Any]:
    limits = served(http).limits
    request: ImageRequest = kind.make(given, images=())
    check_limits(request, limits)
    return await ask(http, model, request, await _images(given, limits))


async def _images(given: Any, limits: Limits) -> tuple[EncodedImage, ...]:
    if not given.images:
        raise UsageError("images is empty: send images in base64, or one as the body.")
    return await encoded_images(given.images, limits)


def _search(images: Sequence[EncodedImage], top: int, index: ImageIndex) -> list[Any]:
    with room_for(images):
        return [
            ImageSearchAnswer(
                query=image.name, kind="image", images=tuple(index.search(image.decode(), top=top))
            )
            for image in images
        ]


@router.post("/search", response_model=Searches, openapi_extra=SEARCH.openapi())
async def search(http: HttpRequest) -> Response:
    """Find images of the served index by words, or by images that they resemble."""
    given = await SEARCH.read(http)
    models = served(http)
    if models.index is None:
        raise NotFoundError("No index of images is served. Start the server with an `index`.")
    request: ImageSearchRequest = SEARCH.make(given, kind="text")
    check_limits(request, models.limits)
    if not given.queries and not given.images:
        raise UsageError("queries is empty: send words, or images in base64.")
    answers: list[Any] = []
    if given.queries:
        work = models.index.ask(job_of(request))
        answers += await while_connected(http, work, models.limits.answer)
    if given.images:
        images = await encoded_images(given.images, models.limits)
        cost = IMAGE_TOKENS * len(images) + cost_of(images)
        work = models.index.call(partial(_search, images, given.top), cost=cost)
        answers += await while_connected(http, work, models.limits.answer)
    answered = [each.to_json() for each in answers]
    if given.thumbnails:
        for answer in answered:
            for each in answer.get("images", ())[:THUMBNAILS]:
                each["thumbnail"] = await asyncio.to_thread(_thumbnail, each["path"])
    return JsonResponse({"answers": answered})


def _thumbnail(path: str) -> str | None:
    """Draw an image of the index small; None if it is in an archive, or gone."""
    try:
        image = open_image(Path(path))
    except (ManyheadsError, OSError):
        return None
    if not isinstance(image, Image.Image):
        return None
    image = image.convert("RGBA")
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    return f"data:image/png;base64,{_png(image)}"
