"""Files of the page: each has the hash of its content as its ETag, so that a reload sends none."""

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope


class HashedFiles(StaticFiles):
    """A folder of files, which browsers keep and ask about each time they need one."""

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
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
