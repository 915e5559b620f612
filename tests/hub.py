"""A stand-in of the Hugging Face hub on this machine: its HTTP interface for models.

Folders are served as it serves them: what a repository holds with sizes and hashes, and files by
commit; large ones from another address. What goes wrong is set by the repository.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" * 6 + "c0ff"
LARGE = (".bin", ".h5", ".msgpack", ".onnx", ".safetensors", ".spm", ".model")  # of LFS


@dataclass
class Hub:
    """Repositories by name and revision, what was asked for, and what goes wrong."""

    address: str = ""
    repositories: dict[str, Path] = field(default_factory=dict)  # "user/model" or "user/model@rev"
    asked: list[str] = field(default_factory=list)  # files, in order
    ranges: list[str] = field(default_factory=list)  # that were asked for
    tokens: dict[str, str | None] = field(default_factory=dict)  # sent, by the part of the hub
    gated: str = ""  # the token that opens repositories
    # Large files that break off after so many bytes, and fail from then on (-1).
    cut: dict[str, int] = field(default_factory=dict)
    damaged: str = ""  # a file that is sent with other bytes
    about: bytes = b""  # in place of what it says of a repository

    def files(self, folder: Path) -> list[str]:
        return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def describe(path: Path, name: str) -> dict[str, Any]:
    content = path.read_bytes()
    told: dict[str, Any] = {"rfilename": name, "size": len(content)}
    if path.suffix in LARGE:
        digest = hashlib.sha256(content).hexdigest()
        lfs = {"sha256": digest, "size": len(content), "pointerSize": 130}
        return told | {"blobId": "0" * 40, "lfs": lfs}
    return told | {"blobId": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()}


@contextmanager
def serving() -> Iterator[Hub]:
    """Serve an empty hub; fill `repositories`."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            if path.startswith("/api/models/"):
                self.repository(path.removeprefix("/api/models/"))
            elif "/resolve/" not in path:  # what the library asks for itself
                self.answer(404, b"", {})
            else:
                self.file(path.removeprefix("/large"), large=path.startswith("/large"))

        def repository(self, name: str) -> None:
            hub.tokens["api"] = self.headers["Authorization"]
            if hub.about:
                return self.answer(200, hub.about, {})
            name, _, revision = name.partition("/revision/")
            folder = hub.repositories.get(f"{name}@{revision}" if revision else name)
            if folder is None:
                code = "RevisionNotFound" if name in hub.repositories else "RepoNotFound"
                return self.answer(404 if revision else 401, b"{}", {"X-Error-Code": code})
            siblings = [describe(folder / each, each) for each in hub.files(folder)]
            about = {"id": name, "modelId": name, "sha": COMMIT, "siblings": siblings}
            return self.answer(200, json.dumps(about).encode(), {})

        def file(self, path: str, *, large: bool) -> None:
            name, _, rest = path[1:].partition("/resolve/")
            commit, _, file = rest.partition("/")
            folders = {n: f for n, f in hub.repositories.items() if n.partition("@")[0] == name}
            folder = next(f for f in folders.values() if (f / file).exists())
            sent = self.headers["Authorization"]
            hub.tokens["large" if large else "files"] = sent
            if hub.gated and not large and sent != f"Bearer {hub.gated}":
                return self.answer(403 if sent else 401, b"", {"X-Error-Code": "GatedRepo"})
            content = (folder / file).read_bytes()
            assert commit == COMMIT
            if not large:
                hub.asked.append(file)
            if not large and Path(file).suffix in LARGE:
                elsewhere = hub.address.replace("127.0.0.1", "localhost")
                return self.answer(302, b"", {"Location": f"{elsewhere}/large{self.path}"})
            if file == hub.damaged:
                content = content[:-1] + bytes([content[-1] ^ 1])
            first, status, headers = 0, 200, {}
            if asked := self.headers["Range"]:
                hub.ranges.append(asked)
                first, status = int(asked.removeprefix("bytes=").partition("-")[0]), 206
                total = len(content)
                headers = {"Content-Range": f"bytes {first}-{total - 1}/{total}"}
            cut = hub.cut.get(file, 0) if large else 0
            if cut < 0:
                return self.answer(503, b"", {})
            if cut:
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[:cut])
                self.close_connection = True
                hub.cut[file] = -1
                return None
            return self.answer(status, content[first:], headers)

        def answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
