"""What goes over the wire: compressed, and not sent again while it is the same."""

import gzip
import json
import re
from pathlib import Path

import httpx

from manyheads.web.app import STATIC, HashedFiles
from tests.web.running import Running

FIRST_VISIT = 60_000  # bytes of scripts and styles
LATER = ("draw/look", "compare", "learn", "path", "picture", "search")  # come when they are opened
IMPORT = re.compile(r'^(?:import|\} from|export)\b[^;"]*"(/|\./)([\w/.-]+\.js)"', re.MULTILINE)
SENTENCE = {"model": "multi30k-en-de", "text": "A man is cleaning a window.", "form": "page"}


def visited(client: httpx.Client, *later: str) -> dict[str, httpx.Response]:
    """What a browser asks for to show the page: the page, and all that files name or import."""
    found: dict[str, httpx.Response] = {}
    waiting = ["/", *(f"/static/{name}.js" for name in later)]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found[path] = client.get(path)
        assert found[path].status_code == 200, path
        folder = path.rpartition("/")[0]
        waiting += [
            f"/{name}" if start == "/" else f"{folder}/{name}"
            for start, name in IMPORT.findall(found[path].text if path.endswith(".js") else "")
        ]
        if path == "/":
            waiting += re.findall(r'(?:src|href)="(/static/[^"]+)"', found[path].text)
    return found


def test_the_first_visit(client: httpx.Client) -> None:
    """All that is asked for before something is drawn, as its bytes were counted."""
    found = visited(client)
    assert {"/static/page.js", "/static/translate.js", "/static/figure.js"} <= set(found)
    assert not {f"/static/{name}.js" for name in LATER} & set(found)
    assert sum(each.num_bytes_downloaded for each in found.values()) <= FIRST_VISIT
    large = [path for path, each in found.items() if len(each.content) > 1000]
    assert len(large) > 12
    for path in large:
        assert found[path].headers["content-encoding"] == "gzip", path
        assert found[path].headers["vary"] == "Accept-Encoding"


def test_a_reload_sends_nothing(client: httpx.Client) -> None:
    """Each file is asked about by the hash of what the browser has; other contents are sent."""
    for path, first in visited(client, *LATER).items():
        assert first.headers["cache-control"] == "no-cache"
        again = client.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b""), path
        assert again.headers["etag"] == first.headers["etag"]
        assert again.headers["content-security-policy"]
        assert client.get(path, headers={"If-None-Match": '"other"'}).content == first.content


def test_the_hash_is_that_of_the_content(tmp_path: Path) -> None:
    """Not of time and size, in which the files of two wheels may agree."""
    tags = []
    for name, content in (("one", "a = 1;"), ("two", "a = 2;"), ("again", "a = 1;")):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        scope = {"type": "http", "method": "GET", "headers": []}
        tags.append(
            HashedFiles(directory=tmp_path).file_response(path, path.stat(), scope).headers["etag"]
        )
    assert tags[0] == tags[2] != tags[1]


def test_clients_without_gzip(client: httpx.Client) -> None:
    found = client.get("/static/page.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in found.headers
    assert found.content == (STATIC / "page.js").read_bytes()


def test_answers_are_compressed_if_they_are_large(client: httpx.Client) -> None:
    """Above 1 kB; not where lines are sent as they come."""
    with client.stream("POST", "/api/v1/look", json=SENTENCE) as stream:
        sent = b"".join(stream.iter_raw())
        assert stream.headers["content-encoding"] == "gzip"
    assert len(sent) < 0.5 * len(gzip.decompress(sent))
    assert json.loads(gzip.decompress(sent))["data"]["told"]["model"] == "multi30k-en-de"
    small = client.post("/api/v1/translate", json={"texts": ["A dog runs."]})
    assert len(small.content) < 1000
    assert "content-encoding" not in small.headers


def test_streams_are_sent_line_by_line(shipped: Running) -> None:
    body = {"text": "A dog runs.\n\n" * 100, "target": "de", "stream": True}
    with shipped.client.stream("POST", "/api/v1/translate/document", json=body) as stream:
        assert stream.headers["content-type"] == "application/x-ndjson"
        assert "content-encoding" not in stream.headers
        assert len(stream.read()) > 1000
