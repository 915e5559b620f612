"""The command: a process of its own that starts, answers, and ends without losing an answer."""

import asyncio
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from PIL import Image

from manyheads.image_search.image_index import index
from manyheads.project.paths import find_model
from tests.cli.conftest import Call, call  # noqa: F401 - a fixture
from tests.web.test_files import S, package

COMMAND = (sys.executable, "-m", "manyheads", "serve", "--port", "0")
PATIENCE = 120


@contextmanager
def process(*options: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command; give the process, and its address once it is ready."""
    found = subprocess.Popen(
        [*COMMAND, *options],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
    )
    try:
        assert found.stderr is not None
        told, address = "", None
        while address is None:
            line = found.stderr.readline()
            assert line, told
            told += line
            address = re.search(r"serving .* at (http://\S+)", line)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if httpx.get(f"{address[1]}/health/ready", timeout=60).status_code == 200:
                    break
            except httpx.ConnectError:
                pass
            assert found.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        yield found, address[1]
    finally:
        found.kill()
        found.wait()
        assert found.stderr is not None
        found.stderr.close()


@pytest.mark.parametrize(
    "sign", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.full)]
)
def test_what_was_accepted_is_answered(sign: signal.Signals) -> None:
    """Of requests that wait when the signal comes; nothing new is accepted, the end is clean."""
    with process("multi30k-en-de") as (running, address):
        texts = [f"A man is cleaning window number {n} of a very large house." for n in range(24)]

        def ask() -> httpx.Response:
            given = {"texts": texts, "beams": 8}
            return httpx.post(f"{address}/api/v1/translate", json=given, timeout=PATIENCE)

        with ThreadPoolExecutor(2) as clients:
            asked = [clients.submit(ask) for _ in range(2)]
            end = time.monotonic() + PATIENCE
            busy = 'manyheads_waiting_tokens{model="multi30k-en-de"}'
            while busy not in (text := httpx.get(f"{address}/metrics", timeout=60).text) or (
                f"{busy} 0.0" in text and "merged_requests_count" not in text
            ):
                assert time.monotonic() < end
            time.sleep(0.1)
            running.send_signal(sign)
            answers = [each.result() for each in asked]
        assert [each.status_code for each in answers] == [200, 200]
        assert all(len(each.json()["answers"]) == len(texts) for each in answers)
        assert running.wait(PATIENCE) in (0, -sign, 130)
        with pytest.raises(httpx.ConnectError):
            httpx.get(address)


def test_the_page_is_opened(tmp_path: Path) -> None:
    """In the browser that BROWSER names, when it can be asked for."""
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part\nmv {opened}.part {opened}\n')
    browser.chmod(0o755)
    with process("digits", "--open", BROWSER=f"{browser} %s") as (_, address):
        end = time.monotonic() + PATIENCE
        while not opened.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        assert opened.read_text("utf-8").strip() == address


def test_the_token_of_the_environment_and_of_a_file(tmp_path: Path) -> None:
    """What is served with one needs it."""
    (tmp_path / "token").write_text("from-file\n", encoding="utf-8")
    with process("digits", "--token-file", str(tmp_path / "token")) as (_, address):
        assert httpx.get(f"{address}/api/v1/models").status_code == 401
        headers = {"Authorization": "Bearer from-file"}
        found = httpx.get(f"{address}/api/v1/models", headers=headers)
        assert [each["name"] for each in found.json()["models"]] == ["digits"]


def test_a_token_file_that_is_no_text(tmp_path: Path, call: Call) -> None:  # noqa: F811
    (tmp_path / "token").write_bytes(b"\xcc\xff")
    assert "not ASCII" in failing(call, "digits", "--token-file", str(tmp_path / "token"))


def failing(call: Call, *options: str) -> str:  # noqa: F811
    """What the command says when it does not begin to serve."""
    found = call("serve", "--port", "0", *options)
    assert found.code == 2, found.err
    return found.err


def test_mistakes(call: Call) -> None:  # noqa: F811
    """An address that others can reach, a port that is taken, a model that is none."""
    assert "set MANYHEADS_TOKEN" in failing(call, "--host", "0.0.0.0")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "cannot listen" in failing(call, "--port", port)
    assert "There is no model 'multi30k'" in failing(call, "multi30k")
    assert "no index" in failing(call, "digits", "--index", "nowhere").lower()


def test_overload_is_refused_and_passes() -> None:
    """Many times what fits: an answer, or 429 with a time; and then all is well."""
    with process("multi30k-en-de") as (_, address):
        texts = ["A group of people is standing in front of a very large old house."] * 100
        given = {"texts": texts, "beams": 8}

        def ask(_: int) -> httpx.Response:
            return httpx.post(f"{address}/api/v1/translate", json=given, timeout=PATIENCE)

        with ThreadPoolExecutor(6) as clients:
            found = list(clients.map(ask, range(6)))
        statuses = {each.status_code for each in found}
        assert 200 in statuses
        assert statuses <= {200, 429}
        for each in found:
            assert each.status_code == 200 or int(each.headers["Retry-After"]) >= 1
        last = httpx.post(f"{address}/api/v1/translate", json={"texts": ["A man."]}, timeout=60)
        assert last.status_code == 200


def contents(*folders: Path) -> dict[Path, bytes]:
    """The hash of every file of some folders."""
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return {path: hashlib.sha256(path.read_bytes()).digest() for path in files}


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for each in found for child in each.read_text(encoding="utf-8").split()]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_others_are_answered_while_workbooks_are_divided() -> None:
    """17 kB each, of 290,000 cells; and 2 kB of the beginnings of columns, which is no XML."""
    cells = "<c><is><t>a</t></is></c>" * 290_000
    workbook = {"xl/workbook.xml": f"<workbook {S}/>"}
    slow = package(workbook | {"xl/worksheets/a.xml": f"<worksheet {S}>{cells}</worksheet>"})
    begun = package(workbook | {"xl/tables/a.xml": f"<table {S}>" + "<tableColumn " * 60_000})
    where = "/api/v1/translate/file?target=de&name=a.xlsx"
    sentence = {"texts": ["A man is cleaning a window."]}

    async def ask(address: str) -> None:
        async with httpx.AsyncClient(base_url=address, timeout=PATIENCE) as client:
            refused = await client.post(where, content=begun)
            assert refused.status_code == 422
            assert "damaged" in refused.json()["detail"]
            sent = [asyncio.create_task(client.post(where, content=slow)) for _ in range(3)]
            for _ in range(5):
                assert (await client.get("/health/live")).status_code == 200
                found = await client.post("/api/v1/translate", json=sentence)
                assert found.status_code == 200
            assert not any(each.done() for each in sent), "others waited for the workbooks"
            for each in sent:
                each.cancel()
            await asyncio.gather(*sent, return_exceptions=True)
            found = await client.post("/api/v1/translate/file?target=de", content=b"A dog.")
            assert found.status_code == 200

    with process("multi30k-en-de") as (_, address):
        asyncio.run(ask(address))


def test_killed_under_load(tmp_path: Path) -> None:
    """Clients see errors only while it is down; models and the index stay byte for byte."""
    model, images = tmp_path / "own", tmp_path / "images"
    shutil.copytree(find_model("multi30k-en-de"), model)
    images.mkdir()
    for colour in ("red", "green", "blue"):
        Image.new("RGB", (64, 64), colour).save(images / f"{colour}.png")
    index(images, out=tmp_path / "index")
    before = contents(model, images, tmp_path / "index")
    assert len(before) > 8
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    options = (str(model), "--index", str(tmp_path / "index"), "--port", port)
    asks = [
        ("/api/v1/translate", {"texts": ["A man is cleaning a window."] * 8}),
        ("/api/v1/search", {"queries": ["a red square"], "top": 2, "thumbnails": True}),
        ("/api/v1/translate/document", {"text": "Two dogs play.", "target": "de"}),
    ]
    address = f"http://127.0.0.1:{port}"
    over = threading.Event()
    seen: list[tuple[float, int | str]] = []  # when a request was sent, and what came back

    def ask(number: int) -> None:
        path, given = asks[number % len(asks)]
        while not over.is_set():
            sent = time.monotonic()
            try:
                found = httpx.post(f"{address}{path}", json=given, timeout=PATIENCE)
                seen.append((sent, found.status_code))
            except httpx.TransportError as error:
                seen.append((sent, type(error).__name__))
                time.sleep(0.05)

    def answered(since: float) -> None:
        end = time.monotonic() + PATIENCE
        while sum(sent > since and status == 200 for sent, status in list(seen)) < 6:
            assert time.monotonic() < end
            time.sleep(0.05)

    with ThreadPoolExecutor(len(asks)) as clients:
        try:
            with process(*options) as (found, _):
                asked = [clients.submit(ask, number) for number in range(len(asks))]
                answered(0)
                workers = children(found.pid)
                assert workers
                found.kill()
                found.wait()
                end = time.monotonic() + PATIENCE
                while any(map(alive, workers)):
                    assert time.monotonic() < end
                    time.sleep(0.02)
            with process(*options):
                answered(time.monotonic())
                over.set()
                for each in asked:
                    each.result()
        finally:
            over.set()
    statuses = {status for _, status in seen}
    assert 200 in statuses
    assert not [each for each in statuses if isinstance(each, int) and each not in (200, 503)]
    assert contents(model, images, tmp_path / "index") == before


def alive(pid: int) -> bool:
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return told.rpartition(")")[2].split()[0] != "Z"


def test_without_the_extra() -> None:
    """The message says what to install."""
    code = (
        "import sys; sys.modules['uvicorn'] = None; sys.argv = ['manyheads', 'serve'];"
        "from manyheads.cli.main import main; main()"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert found.returncode == 2
    assert "pip install 'manyheads[serve]'" in found.stderr
