"""What a client must not do: too much, too slowly, from elsewhere, or with the file system."""

import asyncio
import contextlib
import io
import json
import logging
import socket
import struct
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from PIL import Image

from manyheads.errors import UsageError
from manyheads.web import request_images as images
from manyheads.web.body_fields import FORM, SIGNS, read_fields
from manyheads.web.request_images import EncodedImage
from manyheads.web.settings import Limits, Settings
from tests.web.conftest import encoded, png
from tests.web.running import Running, running

SMALL = Limits(
    body=20_000, characters=200, inputs=4, pixels=10_000, receive=0.5, document=500, look=8
)


@pytest.fixture(scope="module")
def small() -> Iterator[Running]:
    """A server with low limits and a token."""
    with running(["multi30k-en-de", "digits"], limits=SMALL, token="secret") as found:
        found.client.headers["Authorization"] = "Bearer secret"
        yield found


def problem(found: httpx.Response, status: int) -> dict[str, str]:
    assert found.status_code == status, found.text
    assert found.headers["content-type"] == "application/problem+json"
    told: dict[str, str] = found.json()
    assert {"title", "detail", "where", "remedy", "status"} <= set(told)
    return told


def test_an_open_address_needs_a_token_or_consent() -> None:
    with pytest.raises(UsageError, match="others can reach"):
        Settings(host="0.0.0.0")
    assert not Settings(host="0.0.0.0", token="a").loopback
    assert not Settings(host="::", public=True).loopback
    for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost"):
        assert Settings(host=host).loopback
    with pytest.raises(UsageError, match="others can reach"):
        Settings(host="127.example.org")  # any address, whatever its name begins with
    with pytest.raises(UsageError, match="token is empty"):
        Settings(token=" ")


def test_openapi_says_where_the_token_goes(small: Running) -> None:
    """A path is declared to need it if, and only if, it is refused without."""
    described = small.client.get("/openapi.json").json()
    assert described["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    with httpx.Client(base_url=small.address, trust_env=False, timeout=60) as bare:
        for path, operations in described["paths"].items():
            if "get" in operations and "{" not in path:
                refused = bare.get(path).status_code in (401, 403)
                assert ("security" in operations["get"]) == refused, path
    assert described["paths"]["/api/v1/translate"]["post"]["security"] == [{"token": []}]


def test_the_token(small: Running) -> None:
    """As a header, as clients of DeepL send it, or as a field of LibreTranslate."""
    with httpx.Client(base_url=small.address, trust_env=False, timeout=60) as bare:
        given = {"texts": ["A man."]}
        told = problem(bare.post("/api/v1/translate", json=given), 401)
        assert "Authorization" in told["remedy"]
        wrong = {"Authorization": "Bearer secre"}
        problem(bare.post("/api/v1/translate", json=given, headers=wrong), 401)
        problem(bare.get("/metrics"), 401)
        problem(bare.get("/openapi.json"), 401)
        assert bare.get("/health/live").status_code == 200
        assert bare.get("/").status_code == 200
        assert small.client.post("/api/v1/translate", json=given).status_code == 200
        deepl = {"Authorization": "DeepL-Auth-Key secret"}
        asked = bare.post(
            "/v2/translate", json={"text": ["A man."], "target_lang": "DE"}, headers=deepl
        )
        assert asked.status_code == 200
        told = problem(bare.get("/v2/usage"), 403)  # what its clients call a wrong key
        assert "DeepL-Auth-Key" in told["remedy"]
        libre = {"q": "A man.", "source": "en", "target": "de"}
        problem(bare.post("/translate", json=libre), 401)
        problem(bare.post("/translate", json=libre | {"api_key": "wrong"}), 401)
        assert bare.post("/translate", json=libre | {"api_key": "secret"}).status_code == 200
        keyed = bare.request("GET", "/languages", data={"api_key": "secret"})  # as its clients do
        assert keyed.status_code == 200
        assert bare.post("/translate", data=libre | {"api_key": "secret"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.evil.example"}, 403),
        ({"Host": "127.evil.example:8000", "Origin": "http://127.evil.example:8000"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "127.1.2.3:8000"}, 200),
        ({"Host": "[::1]:8000"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://[bad"}, 403),
        ({"Host": "localhost"}, 200),
    ],
)
def test_other_hosts_and_origins(
    client: httpx.Client, headers: dict[str, str], status: int
) -> None:
    """A page elsewhere cannot ask in its visitor's name."""
    assert client.get("/api/v1/models", headers=headers).status_code == status


def test_headers(client: httpx.Client) -> None:
    """On pages, answers and problems alike."""
    for path in ("/", "/static/page.js", "/static/draw/look.js", "/api/v1/models", "/nothing"):
        found = client.get(path)
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["referrer-policy"] == "no-referrer"


PATHS = [
    "/etc/hostname",
    "../../../etc/hostname",
    "file:///etc/hostname",
    str(Path(__file__)),
    "C:\\windows\\win.ini",
    "http://127.0.0.1:1/x.png",
]


@pytest.mark.parametrize("path", PATHS)
def test_no_path_reaches_the_file_system(client: httpx.Client, path: str) -> None:
    """As an image, a model, a translator, an index's query or a static file."""
    for where in ("classify", "caption", "read"):
        told = problem(client.post(f"/api/v1/{where}", json={"images": [path]}), 422)
        assert "base64" in told["detail"] or "not an image" in told["detail"]
        assert "hostname" not in told["detail"]
    for given in (
        {"texts": ["a"], "model": path},
        {"images": [encoded(png())], "translator": path},
    ):
        where = "translate" if "texts" in given else "read"
        problem(client.post(f"/api/v1/{where}", json=given), 404)
    unknown = {"images": [encoded(png())], "outputs": path}
    problem(client.post("/api/v1/classify", json=unknown), 400)
    problem(client.post("/api/v1/look", json={"model": "digits", "text": path}), 400)
    assert client.get(f"/static/{path}").status_code in (404, 405)


def test_a_text_that_names_an_image_is_a_text(client: httpx.Client, tmp_path: Path) -> None:
    """Whether there is such a file makes no difference."""
    there = tmp_path / "cat.png"
    there.write_bytes(png())
    answers = []
    for path in (there, tmp_path / "dog.png"):
        given = {"model": "date-en-ko", "text": str(path)}
        answers.append(client.post("/api/v1/look", json=given).status_code)
    assert answers == [200, 200]


def bomb() -> bytes:
    """A PNG of 60,000 x 60,000 pixels in a few kilobytes."""

    def chunk(name: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 1, 0, 0, 0, 0)
    data = zlib.compress(bytes(100_000), 9)
    begin = b"\x89PNG\r\n\x1a\n"
    return begin + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def tiff() -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (8, 8)).save(content, "eps")
    return content.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"GIF89a", png()[:60], png()[:-12], bomb(), tiff(), b"%PDF-1.7"),
        b"\x93NUMPY\x01\x00" * 9,
    ],
)
def test_bad_images(client: httpx.Client, content: bytes) -> None:
    """Empty, cut off, a decompression bomb, formats that are not on the list."""
    sent = {"content": content, "headers": {"Content-Type": "image/png"}}
    problem(client.post("/api/v1/classify", **sent), 422)  # type: ignore[arg-type]
    problem(client.post("/api/v1/classify", json={"images": [encoded(content)]}), 422)


def test_limits(small: Running) -> None:
    """Each is named, with what helps."""
    client = small.client
    long = client.post("/api/v1/translate", json={"texts": ["a" * 201]})
    assert "200 characters" in problem(long, 413)["detail"]
    many = client.post("/api/v1/translate", json={"texts": ["a"] * 5})
    assert "4 inputs" in problem(many, 413)["detail"]
    wide = client.post("/api/v1/translate", json={"texts": ["a"], "beams": 17})
    assert problem(wide, 400)["where"] == "beams"
    begun = client.post("/api/v1/translate", json={"texts": ["a"], "prefix": "Ein " * 251})
    assert problem(begun, 400)["where"] == "prefix"
    assert "1,000" in problem(begun, 400)["detail"]
    body = client.post("/api/v1/translate", content=b"x" * 20_001)
    assert "20,000 bytes" in problem(body, 413)["detail"]
    large = client.post("/api/v1/classify", json={"images": [encoded(png((101, 100)))]})
    assert "10,000 pixels together" in problem(large, 422)["detail"]
    both = {"images": [encoded(png((99, 100))), encoded(png((20, 20)))]}
    second = problem(client.post("/api/v1/classify", json=both), 422)["detail"]
    assert "10,000 pixels together" in second
    document = client.post("/api/v1/translate/document", json={"text": "a " * 300})
    assert "500 characters" in problem(document, 413)["detail"]

    own = {"model": "multi30k-en-de", "text": "A man."}
    assert client.post("/api/v1/look", json=own).status_code == 200
    longer: list[dict[str, object]] = [
        {"text": "A man " * 9},
        {"reference": "Ein Mann " * 9},
        {"also": ["A man."] * 3},
    ]
    row = {"site": "decoder layer 1 cross", "head": 1, "row": 1}
    for more in longer:
        for path, place in (("look", {}), ("look/head", row)):
            told = problem(client.post(f"/api/v1/{path}", json={**own, **more, **place}), 413)
            assert "8 tokens" in told["detail"]
            assert "shorter" in told["remedy"]

    def endless() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 1000

    problem(client.post("/api/v1/translate", content=endless()), 413)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"[" * 15_000, "not"),
        (b'{"texts": ["a"', "not JSON"),
        (b'{"texts": ["\xff"]}', "not UTF-8"),
        (b'{"texts": NaN}', "not JSON"),
        (b'{"length_penalty": 1e999, "texts": []}', "length_penalty"),
        (b'["texts"]', "not a JSON object"),
        (b'{"texts": [1]}', "texts"),
        (b'{"texts": "a"}', "texts"),
        (b'{"texts": ["\\ud800"]}', "surrogate"),
        (b'{"texts": ["a"], "n_best": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"texts": ["a"], "n_best": 1.5}', "n_best"),
        (b"{}", "texts"),
    ],
)
def test_bad_json(small: Running, content: bytes, told: str) -> None:
    headers = {"Content-Type": "application/json"}
    found = small.client.post("/api/v1/translate", content=content, headers=headers)
    assert found.status_code in (400, 422), found.text
    assert told in problem(found, found.status_code)["detail"]


def test_slow_clients(small: Running) -> None:
    """Headers or a body that do not arrive end the connection; others are answered meanwhile."""
    place = (
        small.address.rpartition("/")[2].partition(":")[0],
        int(small.address.rpartition(":")[2]),
    )
    with socket.create_connection(place) as silent, socket.create_connection(place) as slow:
        silent.sendall(b"POST /api/v1/translate HTTP/1.1\r\nHost: 127")
        slow.sendall(
            b"POST /api/v1/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
            b"Authorization: Bearer secret\r\nContent-Type: application/json\r\n\r\n{"
        )
        assert small.client.get("/health/live").status_code == 200
        for each in (silent, slow):
            each.settimeout(None)  # a connection that stays open ends with the test's own limit
        assert silent.recv(1000) == b""
        assert b" 408 " in slow.recv(1000)


def test_half_sent_bodies_count() -> None:
    """Those in chunks, which do not tell their length, are together not larger than is allowed."""
    with running(["digits"], limits=Limits(bodies=10_000)) as server, ExitStack() as opened:
        client = server.client
        host, port = server.address.removeprefix("http://").split(":")
        half = b"POST /api/v1/classify HTTP/1.1\r\nHost: localhost\r\n"
        half += b"Transfer-Encoding: chunked\r\n\r\nfa0\r\n" + b" " * 4000 + b"\r\n"
        for _ in range(2):
            slow = opened.enter_context(socket.create_connection((host, int(port)), timeout=20))
            slow.sendall(half)

        def until(status: int, size: int) -> httpx.Response:
            while (found := client.post("/api/v1/tag", content=b" " * size)).status_code != status:
                time.sleep(0.05)
            return found

        assert problem(until(503, 4000), 503)["title"] == "Busy"
        with socket.create_connection((host, int(port)), timeout=20) as third:
            third.sendall(half)
            assert b" 503 " in third.recv(1000)
        opened.close()  # their clients leave, and nothing is held any more
        assert problem(until(400, 9000), 400)["title"] == "Unreadable body"
        until(400, 9000)


def test_slow_headers_after_a_request(small: Running) -> None:
    """A connection that has had an answer waits for headers no longer than a new one."""
    host, port = small.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as slow:
        for _ in range(2):
            slow.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += slow.recv(1000)
        slow.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        assert slow.recv(1000) == b""  # closed


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_client_that_does_not_read_is_left() -> None:
    """It asks for more than fits between the two, and the server ends the connection."""
    asked = 400
    with running(["digits"], limits=Limits(receive=0.5)) as server:
        host, port = server.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as slow:
            # With 4096 bytes, what is on its way would come in pieces that each take 0.2 seconds.
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            slow.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * asked)
            ends = tuple(f":{each:04X}" for each in (int(port), slow.getsockname()[1]))
            end = time.monotonic() + 60
            while _is_open(*ends):
                assert time.monotonic() < end
                time.sleep(0.05)
            received = 0
            with contextlib.suppress(ConnectionResetError):
                while part := slow.recv(1 << 20):
                    received += part.count(b"HTTP/1.1 200")
        assert 0 < received < asked
        assert server.client.get("/health/live").status_code == 200


def _is_open(own: str, other: str) -> bool:
    """Tell whether this end of a connection is open, as the kernel says it."""
    lines = Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]
    found = (line.split()[1:4] for line in lines)
    return any((a.endswith(own), b.endswith(other), state) == (1, 1, "01") for a, b, state in found)


def test_images_are_decoded_by_the_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server reads their sizes only; large ones are in memory one after another."""
    threads, together, most = set(), 0, 0
    decode = EncodedImage.decode

    def slowly(image: EncodedImage) -> Image.Image:
        nonlocal together, most
        threads.add(threading.current_thread().name)
        together += 1
        most = max(most, together)
        time.sleep(0.1)
        together -= 1
        return decode(image)

    monkeypatch.setattr(EncodedImage, "decode", slowly)
    monkeypatch.setattr(images, "LARGE", 1)
    models, image = ["digits", "cifar10-cct-2-3x2"], encoded(png())
    asks: list[tuple[str, dict[str, object]]] = []
    for model in models:
        asks += [("classify", {"model": model, "images": [image]})] * 2
        asks += [("look", {"model": model, "image": image})]
    with running(models) as server, ThreadPoolExecutor(6) as clients:
        found = clients.map(lambda ask: server.client.post(f"/api/v1/{ask[0]}", json=ask[1]), asks)
        assert [each.status_code for each in found] == [200] * 6
    assert threads == {f"model-{model}_0" for model in models}
    assert most == 1


def test_the_log_has_no_texts(small: Running, caplog: pytest.LogCaptureFixture) -> None:
    """Neither of requests that are answered, nor of refused ones, nor in paths and queries."""
    with caplog.at_level(logging.DEBUG):
        small.client.post("/api/v1/translate", json={"texts": ["A mysterious man."]})
        small.client.post("/api/v1/translate?q=mysterious", json={"texts": 1, "mysterious": 2})
        small.client.get("/mysterious")
        small.client.post("/translate", json={"q": "mysterious", "source": "mysterious"})
    own = [each for each in caplog.records if each.name.startswith(("manyheads", "uvicorn"))]
    assert any("/api/v1/translate 200" in each.getMessage() for each in own)
    assert not [each for each in own if "mysterious" in each.getMessage()]


def test_unknown_paths_and_methods(client: httpx.Client) -> None:
    problem(client.get("/nothing"), 404)
    problem(client.get("/api/v1/translate"), 405)
    problem(client.post("/api/v1/translate", content=b"a", headers={"Content-Type": "a/b"}), 415)
    assert json.loads(client.get("/nothing").text)["remedy"]


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/api/v1/translate", {f"name{i}": 1 for i in range(2000)}),
        ("/api/v1/translate", {"texts": [[]] * 20_000}),
        (
            "/api/v1/translate/document",
            {"text": "a", "glossary": dict.fromkeys(map(str, range(20_000)))},
        ),
        ("/v2/translate", {"text": ["a"], "target_lang": "DE", "ignore_tags": ["x"] * 20_000}),
    ],
)
def test_too_many_parameters_and_entries(
    client: httpx.Client, path: str, given: dict[str, object]
) -> None:
    """They are counted first: to check each, 12 MB of empty lists would take 20 seconds."""
    assert "may have" in problem(client.post(path, json=given), 413)["detail"]


def test_others_are_answered_while_a_large_body_is_read() -> None:
    """It is read by another thread."""

    async def turns() -> int:
        reading = asyncio.create_task(read_fields(b"q=" + b"%41" * 300_000, FORM))
        found = 0
        while not reading.done():
            await asyncio.sleep(0)
            found += 1
        assert reading.result() == {"q": "A" * 300_000}
        return found

    assert asyncio.run(turns()) > 10


def test_too_many_values(client: httpx.Client) -> None:
    """Values are counted before they are read: nothing else would be answered meanwhile."""
    many = b'{"texts": [' + b"[]," * (SIGNS // 2 + 1) + b"1]}"
    headers = {"Content-Type": "application/json"}
    told = problem(client.post("/api/v1/translate", content=many, headers=headers), 413)
    assert "600,000 commas" in told["detail"]
    text = ",:" * 249_990  # as many signs as a document may have
    given = {"text": text, "model": "none"}
    assert client.post("/api/v1/translate/document", json=given).status_code == 404


def test_too_many_tags_to_ignore(client: httpx.Client) -> None:
    """At each "<" of a text all of them would be compared, also those of one long text."""
    tags = ",".join(f"x{i}" for i in range(101))
    given = {"text": ["a"], "target_lang": "DE", "tag_handling": "xml", "ignore_tags": tags}
    assert "ignore_tags" in problem(client.post("/v2/translate", json=given), 400)["detail"]


def test_a_bomb_is_told_its_pixels(client: httpx.Client) -> None:
    """Not that it was damaged; Pillow refuses it by itself when it is opened."""
    header = struct.pack(">IIBBBBB", 30_000, 30_000, 1, 0, 0, 0, 0)
    chunk = b"IHDR" + header
    content = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", len(header)) + chunk
    content += struct.pack(">I", zlib.crc32(chunk)) + struct.pack(">I", 0) + b"IDAT"
    content += struct.pack(">I", zlib.crc32(b"IDAT"))
    sent = client.post("/api/v1/classify", content=content, headers={"Content-Type": "image/png"})
    assert "pixels" in problem(sent, 422)["detail"]


def test_a_missing_language_has_no_name(client: httpx.Client) -> None:
    """Rather than \'None\'."""
    told = problem(client.post("/api/v1/translate", json={"texts": ["a"], "target": "xx"}), 404)
    assert "from any language to 'xx'" in told["detail"]
