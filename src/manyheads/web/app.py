"""The application: routes, page and guard around the served models."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from fastapi import Request as HttpRequest
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.responses import Response

from manyheads.lens.view.report import STATIC as DRAWING
from manyheads.version import __version__
from manyheads.web.glossaries import Glossaries
from manyheads.web.problem_json import RESPONSES, add_handlers
from manyheads.web.request_guard import Guard
from manyheads.web.routes import (
    compatible,
    documents,
    images,
    looking,
    status,
    texts,
)
from manyheads.web.served import Served
from manyheads.web.settings import Settings
from manyheads.web.static_files import HashedFiles

STATIC = Path(__file__).parent / "static"
UNCOMPRESSED = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/x-ndjson")  # sent line by line

DESCRIPTION = """Translate, classify, describe, read and search with Manyheads models, and look \
inside them. Errors are problem+json with the members title, detail, where and remedy."""


def create_app(served: Served, settings: Settings) -> Guard:
    """Make the application; it loads models when it starts and finishes its work when it stops."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(served.start())
        try:
            yield
        finally:
            served.ready = False
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)
            await served.close()

    app = FastAPI(
        title="Manyheads",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        responses=RESPONSES,
        docs_url=None,  # both would load scripts of others
        redoc_url=None,
    )
    app.state.served = served
    app.state.settings = settings
    if settings.glossaries is not None:
        app.state.glossaries = Glossaries(settings.glossaries)
    add_handlers(app)
    for module in (texts, documents, images, looking, status):
        app.include_router(module.router)
    app.include_router(compatible.libretranslate)
    app.include_router(compatible.deepl)
    app.add_middleware(
        GZipMiddleware, minimum_size=1000, compresslevel=5, exclude_content_types=UNCOMPRESSED
    )
    files = HashedFiles(directory=STATIC)
    app.mount("/static/draw", HashedFiles(directory=DRAWING))
    app.mount("/static", files)

    @app.get("/", include_in_schema=False)
    async def page(http: HttpRequest) -> Response:
        return await files.get_response("index.html", http.scope)

    return Guard(app, settings, served.metrics)


def served_by(app: Guard) -> Served:
    """Return the models of an application."""
    return app.app.state.served  # type: ignore[attr-defined] # FastAPI, as it was made
