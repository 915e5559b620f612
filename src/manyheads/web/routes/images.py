"""Classify, describe and read images, and find them in an index."""

import asyncio
import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi import Request as HttpRequest
from PIL import Image
from starlette.responses import Response

from manyheads.app.documents.documents import translate_lines
from manyheads.app.image_search.image_index import ImageIndex
from manyheads.app.requests import (
    Answer,
    CaptionAnswer,
    CaptionRequest,
    ClassifyAnswer,
    ClassifyRequest,
    FoundImage,
    ImageRequest,
    ImageSearchAnswer,
    ImageSearchRequest,
    ReadAnswer,
    ReadRequest,
    Several,
    TranslateRequest,
)
from manyheads.data.images.image_file import open_image
from manyheads.errors import ManyheadsError, NotFoundError, UsageError
from manyheads.web.asking import IMAGE, ask, served, while_connected
from manyheads.web.batching import Job
from manyheads.web.bodies import Body, body, check_search, check_texts, cost_of, decode
from manyheads.web.documents import with_translator
from manyheads.web.problems import JsonResponse
from manyheads.web.served import Served, ServedModel

router = APIRouter(prefix="/api/v1", tags=["images"])
THUMBNAIL = 192  # pixels of the longer side
THUMBNAILS = 60  # per query


def _square() -> str:
    content = io.BytesIO()
    Image.new("RGB", (64, 64), "orange").save(content, "png")
    return base64.b64encode(content.getvalue()).decode()


SQUARE = _square()  # small enough for an example
SENT: dict[str, Any] = {"images": (Several[str], ())}

CLASSIFY = body("ClassifyBody", ClassifyRequest, example={"images": [SQUARE], "top": 3}, **SENT)
CAPTION = body("CaptionBody", CaptionRequest, example={"images": [SQUARE]}, **SENT)
READ = body("ReadBody", ReadRequest, example={"images": [SQUARE], "to": "en"}, **SENT)
SEARCH = body(
    "SearchBody",
    ImageSearchRequest,
    example={"queries": ["a smiling cat"], "top": 5},
    without=("queries",),
    queries=(Several[str], ()),
    thumbnails=(bool, False),
    **SENT,
)


class Classes(Answer):
    """An answer for each image, in order."""

    model: str
    answers: tuple[ClassifyAnswer, ...]


class Captions(Answer):
    """An answer for each image, in order."""

    model: str
    answers: tuple[CaptionAnswer, ...]


class Readings(Answer):
    """An answer for each image, in order."""

    model: str
    answers: tuple[ReadAnswer, ...]


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
        fits = [m.name for m in models.models.values() if _classifies(m, words=bool(given.labels))]
        name = fits[0] if fits else None
    model = models.find(name, ClassifyRequest, verb="classify images")
    answers = await _ask(http, CLASSIFY, given, model)
    return JsonResponse({"model": model.name, "answers": [each.to_json() for each in answers]})


def _classifies(model: ServedModel, *, words: bool) -> bool:
    return model.answers(ClassifyRequest) and model.can("embed_texts") is words


@router.post("/caption", response_model=Captions, openapi_extra=CAPTION.openapi())
async def caption(http: HttpRequest) -> Response:
    """Write the text of images: what they show, or what is printed on them."""
    given = await CAPTION.read(http)
    model = served(http).find(
        _describer(served(http), given.model, reads=False), CaptionRequest, verb="describe images"
    )
    answers = await _ask(http, CAPTION, given, model)
    return JsonResponse({"model": model.name, "answers": [each.to_json() for each in answers]})


@router.post("/read", response_model=Readings, openapi_extra=READ.openapi())
async def read(http: HttpRequest) -> Response:
    """Read the text in images, and translate it if `to` names a language."""
    given = await READ.read(http)
    models = served(http)
    name = _describer(models, given.model, reads=True)
    reader = models.find(name, CaptionRequest, verb="read images")
    translator = None
    if given.translator is not None:
        translator = models.find(given.translator, TranslateRequest, verb="translate")
    elif given.to is not None:
        translator = models.translator(TranslateRequest, reader.languages[0], given.to)
    images = await decode(given.images, models.limits)
    request = CaptionRequest(images=tuple(images))
    found = await ask(http, reader, request, IMAGE * len(images))
    answers = []
    for each in found:
        translation, notes = None, list(each.notes or ())
        if translator is not None and each.text is not None:
            # Lines of a paragraph are one text: sentences go on in the next line.
            paragraphs = [" ".join(part.split()) for part in each.text.split("\n\n")]
            texts = [part for part in paragraphs if part]
            work = with_translator(models, translator, partial(translate_lines, texts=texts))
            document = await while_connected(http, work, models.limits.answer)
            translation = "\n\n".join(line.translation for line in document.lines)
            notes += document.notes
        answers.append(
            ReadAnswer(
                path=each.path,
                text=each.text,
                language=each.language,
                to=None if translator is None else translator.languages[1],
                translation=translation,
                notes=tuple(notes) or None,
                error=each.error,
            ).to_json()
        )
    return JsonResponse({"model": reader.name, "answers": answers})


def _describer(models: Served, name: str | None, *, reads: bool) -> str | None:
    """Choose a model that reads one language, or one that describes."""
    if name is not None:
        return name
    able = [each for each in models.models.values() if each.answers(CaptionRequest)]
    able.sort(key=lambda each: (each.languages[0] is not None) is not reads)
    return able[0].name if able else None


async def _ask(http: HttpRequest, kind: Body, given: Any, model: ServedModel) -> list[Any]:
    limits = served(http).limits
    if not given.images:
        raise UsageError("images is empty: send images in base64, or one as the body.")
    check_texts((*getattr(given, "labels", ()), *getattr(given, "templates", ())), limits)
    check_search(given, limits)
    request: ImageRequest = kind.make(given, images=await decode(given.images, limits))
    return await ask(http, model, request, IMAGE * len(given.images))


@dataclass(frozen=True)
class _ByWords:
    """Find images by words."""

    top: int

    def __call__(self, index: ImageIndex, queries: Sequence[str]) -> list[Any]:
        """Find them."""
        return index.answer(ImageSearchRequest(queries=tuple(queries), top=self.top, kind="text"))


@dataclass(frozen=True)
class _ByImages:
    """Find images that resemble others."""

    images: Sequence[Image.Image]
    top: int

    def __call__(self, index: ImageIndex) -> list[Any]:
        """Find them."""
        return [
            ImageSearchAnswer(
                query=f"image {number}",
                kind="image",
                images=tuple(index.search(image, top=self.top)),
            )
            for number, image in enumerate(self.images, 1)
        ]


@router.post("/search", response_model=Searches, openapi_extra=SEARCH.openapi())
async def search(http: HttpRequest) -> Response:
    """Find images of the served index by words, or by images that they resemble."""
    given = await SEARCH.read(http)
    models = served(http)
    if models.index is None:
        raise NotFoundError("No index of images is served. Start the server with an `index`.")
    check_texts(given.queries, models.limits)
    check_search(given, models.limits)
    if not given.queries and not given.images:
        raise UsageError("queries is empty: send words, or images in base64.")
    answers: list[Any] = []
    if given.queries:
        words = _ByWords(given.top)
        job = Job(words, given.queries, cost_of(given.queries), words)
        answers += await while_connected(http, models.index.ask(job), models.limits.answer)
    if given.images:
        images = await decode(given.images, models.limits)
        work = models.index.call(_ByImages(images, given.top), cost=IMAGE * len(images))
        answers += await while_connected(http, work, models.limits.answer)
    found = [each.to_json() for each in answers]
    if given.thumbnails:
        for answer in found:
            for each in answer.get("images", ())[:THUMBNAILS]:
                each["thumbnail"] = await asyncio.to_thread(_thumbnail, each["path"])
    return JsonResponse({"answers": found})


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
    content = io.BytesIO()
    image.save(content, "png")
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
