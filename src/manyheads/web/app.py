"""The application: routes, page and guard around the served models."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi import Request as HttpRequest
from starlette.datastructures import Headers
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.responses import FileResponse, Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

from manyheads.lens.view.report import STATIC as DRAWING
from manyheads.version import __version__
from manyheads.web.glossaries import Glossaries
from manyheads.web.problem_json import RESPONSES, add_handlers
from manyheads.web.request_guard import OPEN, Guard
from manyheads.web.routes import compatible, documents, images, looking, status, texts
from manyheads.web.served import Served
from manyheads.web.settings import Settings

STATIC = Path(__file__).parent / "static"
UNCOMPRESSED = (*DEFAULT_EXCLUDED_CONTENT_TYPES, "application/x-ndjson")  # sent line by line

DESCRIPTION = """Translate, classify, describe, read and search with Manyheads models, and look \
inside them. Errors are problem+json with the members title, detail, where and remedy."""


class HashedFiles(StaticFiles):
    """Files of the page, which browsers keep and ask about: the ETag is the hash of the content."""

    def file_response(
        self, full_path: Any, stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Send a file; status 304 without it if the client has this content."""
        # Not the hash of time and size, as FileResponse has: files of two versions may agree in
        # both, because wheels that are built reproducibly have one time for all files.
        content_hash = _hash(Path(full_path), stat_result.st_mtime_ns, stat_result.st_size)
        headers = {"ETag": f'"{content_hash}"', "Cache-Control": "no-cache"}
        if self.is_not_modified(Headers(headers), Headers(scope=scope)):
            return NotModifiedResponse(Headers(headers))
        return FileResponse(full_path, status_code, headers)


@lru_cache(maxsize=256)
def _hash(path: Path, changed: int, size: int) -> str:  # noqa: ARG001 - both are part of the key
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]


class Application(FastAPI):
    """OpenAPI says which paths need the token of `Guard`, so that generated clients send it."""

    def openapi(self) -> dict[str, Any]:
        """Describe all paths, when somebody asks."""
        described = super().openapi()
        if self.state.settings.token is not None:
            schemes = described.setdefault("components", {}).setdefault("securitySchemes", {})
            schemes["token"] = {"type": "http", "scheme": "bearer"}
            for path, operations in described["paths"].items():
                if not path.startswith(OPEN):
                    for operation in operations.values():
                        operation["security"] = [{"token": []}]
        return described


def create_app(served: Served, settings: Settings) -> Guard:
    """Make the application; it loads models when it starts and finishes its work when it stops."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        file = settings.glossaries
        with nullcontext() if file is None else closing(Glossaries(file)) as kept:
            app.state.glossaries = kept
            loading = asyncio.create_task(served.start())
            try:
                yield
            finally:
                served.ready = False
                loading.cancel()
                await asyncio.gather(loading, return_exceptions=True)
                await served.close()

    app = Application(
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
    add_handlers(app)
    routers = [module.router for module in (texts, documents, images, looking, status)]
    for router in (*routers, compatible.libretranslate, compatible.deepl):
        app.include_router(router)
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
