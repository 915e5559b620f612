"""What is served, and how the server is."""

from typing import Any

from fastapi import APIRouter
from fastapi import Request as HttpRequest
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from manyheads.version import __version__
from manyheads.web.ask_queue import served
from manyheads.web.problem_json import JsonResponse

router = APIRouter(tags=["server"])


@router.get("/api/v1/models")
async def models(http: HttpRequest) -> dict[str, Any]:
    """List the models, the first of each kind being its default."""
    own = served(http)
    return {
        "version": __version__,
        "models": [each.facts() for each in own.models.values()],
        "index": own.index is not None,
    }


@router.get(
    "/health/live", responses={503: {"description": "The models' process cannot be started."}}
)
async def live(http: HttpRequest) -> Response:
    """Tell that the server answers, and how the process that runs its models is."""
    worker, documents = served(http).worker, served(http).documents.worker
    failed = worker.status() == "failed"
    status = {
        "status": "failed" if failed else "live",
        "worker": worker.status(),
        "failed_starts": worker.failures,  # in a row
        "documents": documents.status(),
    }
    return JsonResponse(status, 503 if failed else 200)


@router.get("/health/ready", responses={503: {"description": "Not yet, or not any more."}})
async def ready(http: HttpRequest) -> Response:
    """Tell whether models can answer; those that were named are loaded then."""
    status = served(http).status()
    return JsonResponse({"status": status}, 200 if status == "ready" else 503)


@router.get("/metrics", response_class=Response)
async def metrics(http: HttpRequest) -> Response:
    """Count requests, seconds and tokens, in the format of Prometheus."""
    return Response(served(http).metrics.render(), headers={"Content-Type": CONTENT_TYPE_LATEST})
