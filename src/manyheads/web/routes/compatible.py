"""What clients of LibreTranslate and of DeepL's API version 2 speak.

https://github.com/LibreTranslate/LibreTranslate and https://developers.deepl.com/docs
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter
from fastapi import Request as HttpRequest
from starlette.responses import Response

from manyheads.asks.translate_request import TranslateRequest
from manyheads.data.documents.document_formats import TEXT_FORMATS
from manyheads.data.text.languages import NAMES, base, guess, recognised
from manyheads.documents import document_translation as documents
from manyheads.errors import NotFoundError, UsageError
from manyheads.web.ask_queue import ask, served, while_connected
from manyheads.web.body_fields import JSON, read_fields
from manyheads.web.document_sentences import with_translator
from manyheads.web.glossaries import Glossaries
from manyheads.web.problem_json import JsonResponse, refusal
from manyheads.web.request_bodies import check_texts
from manyheads.web.served import Served, ServedModel

libretranslate = APIRouter(tags=["LibreTranslate"])
deepl = APIRouter(prefix="/v2", tags=["DeepL"])
ALTERNATIVES = 10
TAGS = 100  # to ignore
# Of DeepL's parameters those that would change a translation, and what is done here by itself;
# others are hints that a translation may follow or not, such as `context`.
AS_IT_IS: dict[str, tuple[object, ...]] = {
    "formality": ("default", "prefer_more", "prefer_less"),  # prefer: where the language has it
    "split_sentences": (True, "1", 1),
    "preserve_formatting": (True, False, "0", "1", 0, 1),
    "outline_detection": (True, "1", 1),
    "splitting_tags": ([],),
    "non_splitting_tags": ([],),
    "style_id": (),
    "custom_instructions": ([],),
}


def _documented(**example: Any) -> dict[str, Any]:
    content = {JSON: {"schema": {"type": "object"}, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


def _text(given: dict[str, Any], name: str, default: str | None = None) -> str:
    """Return a field that must be a text."""
    value = given.get(name, default)
    if not isinstance(value, str):
        raise UsageError(f"{name} is {'missing' if value is None else 'not a text'}.")
    return value


def _texts(given: dict[str, Any], name: str) -> list[str]:
    value = given.get(name)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise UsageError(f"{name} is missing, or neither a text nor a list of texts.")
    return texts


def _between(models: Served, source: str | None, target: str) -> ServedModel:
    """Find a translator; both protocols answer languages that none has with 400, not 404."""
    try:
        return models.translator(source, target)
    except NotFoundError as error:
        raise UsageError(str(error)) from None


# --- LibreTranslate -------------------------------------------------------------------------------


@libretranslate.get("/languages")
async def languages(http: HttpRequest) -> list[dict[str, Any]]:
    """List the languages that are translated from, and those each is translated into."""
    targets: dict[str, list[str]] = {}
    for source, target in served(http).language_pairs().values():
        targets.setdefault(base(source), []).append(base(target))
    return [
        {"code": code, "name": NAMES.get(code, code), "targets": list(dict.fromkeys(found))}
        for code, found in targets.items()
    ]


@libretranslate.post("/detect", openapi_extra=_documented(q="안녕하세요"))
async def detect(http: HttpRequest) -> list[dict[str, Any]]:
    """Guess the language of a text: one that is translated from, or else any that is known.

    A text without letters gets no confidence.
    """
    given = await read_fields(await http.body(), http.headers.get("content-type", ""))
    models, text = served(http), _text(given, "q")
    check_texts([text], models.limits)
    sources = [source for source, _ in models.language_pairs().values()]
    own, all_ = guess(text, sources), guess(text, [*sources, *recognised()])
    guesses = own if own and all_[0][0] in dict(own) else all_
    return [
        {"language": language, "confidence": round(100 * confidence, 1)}
        for place, (language, confidence) in enumerate(guesses)
        if confidence > 0 or place == 0
    ]


@libretranslate.get("/frontend/settings")
async def frontend(http: HttpRequest) -> dict[str, Any]:
    """Tell what the server allows."""
    settings = http.app.state.settings
    return {
        "apiKeys": settings.token is not None,
        "charLimit": settings.limits.characters,
        "batchLimit": settings.limits.inputs,
        "frontendTimeout": 500,
        "keyRequired": settings.token is not None,
        "language": {"source": {"code": "auto"}, "target": {"code": "en"}},
        "suggestions": False,
        "supportedFilesFormat": [],
    }


@libretranslate.post(
    "/translate",
    openapi_extra=_documented(q="A man is cleaning a window.", source="en", target="de"),
)
async def translate(http: HttpRequest) -> Response:
    """Translate a text, or each of an array; `format` is text or html."""
    given = await read_fields(await http.body(), http.headers.get("content-type", ""))
    models = served(http)
    texts = _texts(given, "q")
    check_texts(texts, models.limits)
    kind = _text(given, "format", "text")
    if kind not in TEXT_FORMATS:
        raise UsageError(f"format is {kind[:80]!r}. Allowed: {', '.join(TEXT_FORMATS)}.")
    target = _text(given, "target")
    source, detected = _text(given, "source", "auto"), None
    if source == "auto":
        guesses = guess(" ".join(texts), _for_target(models, target))
        source, confidence = guesses[0] if guesses else (source, 0.0)
        detected = {"language": source, "confidence": round(100 * confidence, 1) if guesses else 0}
    model = _between(models, source, target)
    work = translate_texts(models, model, texts, format=kind)
    translated = await while_connected(http, work, models.limits.answer)
    answer: dict[str, list[Any]] = {"translatedText": [each.text for each in translated]}
    notes = [each.notes for each in translated]
    if any(notes):  # beyond the protocol: clients ignore it
        answer["notes"] = notes
    if detected is not None:
        answer["detectedLanguage"] = [detected] * len(texts)
    if count := _number(given.get("alternatives", 0)):
        answers = await ask(http, model, TranslateRequest(texts=tuple(texts), n_best=count + 1))
        answer["alternatives"] = [[each.text for each in found.n_best[1:]] for found in answers]
    if isinstance(given["q"], str):
        return JsonResponse({name: values[0] for name, values in answer.items()})
    return JsonResponse(answer)


async def translate_texts(
    models: Served, model: ServedModel, texts: Sequence[str], **options: Any
) -> list[documents.Document]:
    """Translate texts that are independent of each other; they count as one document."""
    work = partial(documents.translate_texts, texts=texts, **options)
    return await with_translator(models, model, work, sum(map(len, texts)))


def _for_target(models: Served, target: str) -> list[str]:
    """List the languages that are translated into one; all if none is."""
    pairs = models.language_pairs().values()
    sources = [one for one, other in pairs if base(other) == base(target)]
    return sources or [one for one, _ in pairs]


def _number(value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):  # of infinity, such as 1e400
        number = -1
    if not 0 <= number <= ALTERNATIVES:
        raise UsageError(f"alternatives is not a number from 0 to {ALTERNATIVES}.")
    return number


# --- DeepL ----------------------------------------------------------------------------------------

_TAG = re.compile(r"[A-Za-z_][\w.:-]{0,63}")
_MARK = ' translate="no" data-manyheads=""'


def _glossaries(http: HttpRequest) -> Glossaries:
    """Return the glossaries that clients keep; they are gone when the server stops.

    Replicas on several machines have none: they would not find them.
    """
    kept: Glossaries | None = getattr(http.app.state, "glossaries", None)
    if kept is None:
        raise refusal("glossaries_of_one")
    return kept


@deepl.post(
    "/translate", openapi_extra=_documented(text=["A man is cleaning a window."], target_lang="DE")
)
async def translate_texts_of_deepl(http: HttpRequest) -> Response:
    """Translate texts, with tags of HTML or XML in them if `tag_handling` says so."""
    given = await read_fields(await http.body(), http.headers.get("content-type", ""))
    models = served(http)
    texts = _texts(given, "text")
    check_texts(texts, models.limits)
    for name, allowed in AS_IT_IS.items():
        if (value := given.get(name)) not in (None, "", *allowed):
            known = ", ".join(dict.fromkeys(str(each) for each in allowed if each != []))
            remedy = f"Allowed: {known}." if known else "Leave it out."
            raise UsageError(f"`{name}` is {value!r:.80}, and no model here does that. {remedy}")
    handling = given.get("tag_handling")
    if handling not in (None, "", "xml", "html"):
        raise UsageError("tag_handling is neither xml nor html.")
    ignored = _tags(given.get("ignore_tags"))
    target = _text(given, "target_lang")
    source = given.get("source_lang")
    source = source if isinstance(source, str) and source else None
    kept = given.get("glossary_id")
    terms = None if kept in (None, "") else _glossaries(http).find(str(kept)).terms
    able = _for_target(models, target)
    chosen = [_between(models, source or _guessed(text, able), target) for text in texts]
    protected = [_protect(text, ignored) for text in texts] if handling else texts
    work = _translate_each(
        models, chosen, protected, format="html" if handling else "text", glossary=terms
    )
    translated = await while_connected(http, work, models.limits.answer)
    models.metrics.characters.inc(sum(map(len, texts)))
    translations: list[dict[str, Any]] = []
    for model, text, document in zip(chosen, texts, translated, strict=True):
        one: dict[str, Any] = {
            "detected_source_language": base(str(model.languages[0])).upper(),
            "text": _unprotect(document.text) if handling else document.text,
            "billed_characters": len(text),  # nobody is billed; clients read it
        }
        if document.notes:  # beyond the protocol: clients ignore it
            one["notes"] = [*map(_unprotect, document.notes)]
        translations.append(one)
    return JsonResponse({"translations": translations})


def _guessed(text: str, able: Sequence[str]) -> str | None:
    guesses = guess(text, able)
    return guesses[0][0] if guesses else None


async def _translate_each(
    models: Served, chosen: Sequence[ServedModel], texts: Sequence[str], **options: Any
) -> list[documents.Document]:
    """Translate each text by the model chosen for it; those of one model together."""
    by_place: dict[int, documents.Document] = {}
    for model in {each.name: each for each in chosen}.values():
        own = [place for place, each in enumerate(chosen) if each.name == model.name]
        given = [texts[place] for place in own]
        translated = await translate_texts(models, model, given, **options)
        by_place.update(zip(own, translated, strict=True))
    return [by_place[place] for place in range(len(texts))]


def _tags(given: Any) -> list[str]:
    names = given.split(",") if isinstance(given, str) else given or []
    if isinstance(names, list) and len(names) > TAGS:
        raise UsageError(f"ignore_tags has {len(names):,} names of tags: {TAGS} are allowed.")
    if not isinstance(names, list) or not all(
        isinstance(each, str) and _TAG.fullmatch(each.strip()) for each in names
    ):
        raise UsageError("ignore_tags is not a list of names of tags.")
    return [each.strip() for each in names]


def _protect(text: str, tags: Sequence[str]) -> str:
    """Mark elements that are not translated, as HTML says it."""
    if not tags:
        return text
    names = "|".join(map(re.escape, tags))
    return re.sub(rf"<({names})(?=[\s>])", lambda tag: tag[0] + _MARK, text)


def _unprotect(text: str) -> str:
    return text.replace(_MARK, "")


@deepl.get("/languages")
async def languages_of_deepl(http: HttpRequest, type: str = "source") -> list[dict[str, Any]]:
    """List the languages that texts are translated from, or into; some clients send a body."""
    sent = await read_fields(await http.body(), http.headers.get("content-type", ""))
    side = 1 if "target" in (type, sent.get("type")) else 0
    codes = dict.fromkeys(base(pair[side]) for pair in served(http).language_pairs().values())
    return [
        {"language": code.upper(), "name": NAMES.get(code, code)}
        | ({"supports_formality": False} if side else {})
        for code in codes
    ]


@deepl.get("/usage")
async def usage(http: HttpRequest) -> dict[str, int]:
    """Count characters since the server started; the limit is DeepL's number for none."""
    count = served(http).metrics.total("characters")
    return {"character_count": count, "character_limit": 1_000_000_000_000}


@deepl.post(
    "/glossaries",
    status_code=201,
    openapi_extra=_documented(
        name="pets",
        source_lang="en",
        target_lang="de",
        entries="dogs\tVierbeiner",
        entries_format="tsv",
    ),
)
async def create_glossary(http: HttpRequest) -> dict[str, Any]:
    """Keep terms and their required translations until the server stops."""
    kept = _glossaries(http)
    given = await read_fields(await http.body(), http.headers.get("content-type", ""))
    entries, name = _text(given, "entries"), _text(given, "name")
    check_texts([entries, name], served(http).limits)
    pair = _text(given, "source_lang"), _text(given, "target_lang")
    return kept.add(name, *pair, entries, _text(given, "entries_format", "tsv")).facts()


@deepl.get("/glossaries")
async def glossaries(http: HttpRequest) -> dict[str, Any]:
    """List the glossaries."""
    return {"glossaries": [each.facts() for each in _glossaries(http)]}


@deepl.get("/glossaries/{number}")
async def one_glossary(http: HttpRequest, number: str) -> dict[str, Any]:
    """Describe a glossary."""
    return _glossaries(http).find(number).facts()


@deepl.get("/glossaries/{number}/entries", response_class=Response)
async def entries_of_glossary(http: HttpRequest, number: str) -> Response:
    """Give the terms of a glossary, a line each: term, tab, translation."""
    entries = _glossaries(http).find(number).terms.entries.values()
    lines = "\n".join(f"{entry.source}\t{entry.target}" for entry in entries)
    return Response(lines.encode("utf-8"), media_type="text/tab-separated-values; charset=utf-8")


@deepl.delete("/glossaries/{number}", status_code=204)
async def delete_glossary(http: HttpRequest, number: str) -> None:
    """Forget a glossary."""
    _glossaries(http).remove(number)


@deepl.get("/glossary-language-pairs")
async def pairs_of_glossaries(http: HttpRequest) -> dict[str, Any]:
    """List the pairs of languages that glossaries may have."""
    pairs = served(http).language_pairs().values()
    listed = dict.fromkeys((base(one), base(other)) for one, other in pairs)
    return {
        "supported_languages": [{"source_lang": one, "target_lang": other} for one, other in listed]
    }
