"""Look inside a model: what it attends to, as data for drawing or as a page to keep."""

from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi import APIRouter
from fastapi import Request as HttpRequest
from starlette.responses import Response

from manyheads.asks.look_request import LookRequest
from manyheads.asks.request import IMAGE_TOKENS, estimate_tokens
from manyheads.errors import UsageError
from manyheads.looking.look_inside import Look, head_steps_at, look_at
from manyheads.web.ask_queue import served, while_connected
from manyheads.web.learn_ideas import lessons
from manyheads.web.problem_json import JsonResponse, refusal
from manyheads.web.request_bodies import Body, body, check_texts, encoded_images
from manyheads.web.request_images import EncodedImage, cost_of, room_for

router = APIRouter(prefix="/api/v1", tags=["looking inside"])

EXAMPLE = {"model": "multi30k-en-de", "text": "A man is cleaning a window."}
SENT: dict[str, Any] = {
    "text": (str | None, None),
    "image": (str | None, None),  # in base64
}
LOOK = body(
    "LookBody",
    LookRequest,
    example=EXAMPLE,
    **SENT,
    form=(str, "view"),  # view: lens/view/view.schema.json; page: what the page draws; html: a file
    integrated=(bool, False),  # integrate gradients, if that is not too much: seconds
)
HEAD = body(
    "HeadBody",
    LookRequest,
    example=EXAMPLE | {"site": "decoder layer 2 cross", "head": 1, "row": 3},
    **SENT,
    site=(str, ...),  # of the layer, as a map of the view has it
    head=(int, ...),  # from 1
    row=(int, ...),  # from 1
)
FORMS = {"view": Look.to_json, "page": Look.page, "html": Look.html}
Asked = tuple[LookRequest, EncodedImage | None]  # the image that it is about


def _look(form: str, own: Any, request: LookRequest) -> Any:
    return FORMS[form](look_at(own, request))


def _steps(site: str, head: int, row: int, own: Any, request: LookRequest) -> Any:
    """Look at a request, and compute one row of one head."""
    return head_steps_at(own, request, site, head, row).to_json()


def _act(look: Callable[[Any, LookRequest], Any], asked: Asked, own: Any) -> Any:
    """Do something with a request and its image, which the worker decodes."""
    request, image = asked
    if image is None:
        return look(own, request)
    with room_for([image]):
        return look(own, request.model_copy(update={"given": image.decode()}))


@router.get("/learn")
def learn() -> dict[str, Any]:
    """List the ideas of the atlas that have a live figure, and what is often said wrongly."""
    return lessons()


@router.post("/look", openapi_extra=LOOK.openapi())
async def look(http: HttpRequest) -> Response:
    """Run a model on a text or an image with a recorder open."""
    given = await LOOK.read(http)
    if given.form not in FORMS:
        raise UsageError(f"The form is {given.form[:80]!r}. Allowed: {', '.join(FORMS)}.")
    integrated = None if given.integrated else False  # None: as long as it costs little
    result = await _ask(http, LOOK, given, partial(_look, given.form), integrated=integrated)
    if given.form == "html":
        headers = {"Content-Disposition": "attachment; filename=look.html"}
        page = result.encode("utf-8", "replace")
        return Response(page, media_type="text/html; charset=utf-8", headers=headers)
    return JsonResponse(result)


@router.post("/look/head", openapi_extra=HEAD.openapi())
async def head(http: HttpRequest) -> Response:
    """Compute one row of one head step by step: q.k, scale, bias, mask, softmax, values."""
    given = await HEAD.read(http)
    work = partial(_steps, given.site, given.head, given.row)
    return JsonResponse(await _ask(http, HEAD, given, work, integrated=False))


async def _ask(
    http: HttpRequest, kind: Body, given: Any, look: Any, *, integrated: bool | None
) -> Any:
    """Let a model look at the request of a body; its process gets the work as an object."""
    models = served(http)
    limits = models.limits
    if (given.text is None) is (given.image is None):
        raise UsageError("A look needs a text or an image: give one of them.")
    if given.model is None:
        raise UsageError("`model` is missing.")
    causes = (given.instead, given.why, given.why_not)
    texts = tuple(filter(None, (given.text, given.reference, *causes, *given.also)))
    check_texts(texts, limits)
    model = models.by_name(given.model)
    length = models.count_tokens(model, texts)
    if length > limits.look:  # what is computed grows with its square
        raise refusal("look", most=limits.look, count=length)
    cost = (64 if any(causes) else 8) * estimate_tokens(texts)
    image, words, reads = None, given.text, "text"
    if given.image is not None:
        if given.instead is not None:  # it would be the path of a file here
            raise UsageError("An image is compared with another in Python and commands only.")
        (image,) = await encoded_images((given.image,), limits)
        words, reads = image.name, "image"
        cost += 8 * IMAGE_TOKENS + cost_of([image])
    request = kind.make(given, given=words, kind=reads, integrated=integrated)
    work = model.queue.call(partial(_act, look, (request, image)), cost=cost)
    return await while_connected(http, work, limits.answer)
