"""Several processes behind one port: one that dies is replaced, and nothing accepted is lost."""

import errno
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from multiprocessing import Pipe
from pathlib import Path

import httpx
import pytest

from manyheads.errors import WorkerError
from manyheads.web import processes
from manyheads.web.processes import ServerProcesses, counting
from manyheads.web.served import ServedOptions
from manyheads.web.settings import Settings
from tests.cli.conftest import Call, call  # noqa: F401 - a fixture
from tests.web.test_process import PATIENCE, alive, children, failing, process

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
WORDS = {"texts": ["A man is cleaning a window."]}


def counted(address: str, name: str) -> float:
    """The sum of a metric over its labels."""
    text = httpx.get(f"{address}/metrics", timeout=PATIENCE).text
    found = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
    return sum(map(float, found))


def until(met: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < end
        time.sleep(0.05)


def servers(pid: int) -> list[int]:
    """The processes that answer: they have a process for models each, other children have none."""
    return [child for child in children(pid) if children(child)]


@contextmanager
def load(
    address: str, clients: int, token: str = ""
) -> Iterator[list[tuple[float, float, int | str]]]:
    """Ask all the time; a list grows of when a request was sent and answered, and with what."""
    seen: list[tuple[float, float, int | str]] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            sent = time.monotonic()
            try:  # a connection for each request, as of another client
                found: int | str = httpx.post(
                    f"{address}/api/v1/translate",
                    json=WORDS,
                    timeout=PATIENCE,
                    headers={"Authorization": f"Bearer {token}"} if token else {},
                ).status_code
            except httpx.TransportError as error:
                found = type(error).__name__
            seen.append((sent, time.monotonic(), found))

    with ThreadPoolExecutor(clients) as pool:
        asked = [pool.submit(ask) for _ in range(clients)]
        try:
            yield seen
        finally:
            over.set()
        for each in asked:
            each.result()


def test_one_dies_under_load_and_all_end_well() -> None:
    """Lost is at most what was in flight; the sums of the metrics keep what it had counted."""
    clients = 3
    with process("multi30k-en-de", "--processes", "2") as (running, address):
        until(lambda: len(servers(running.pid)) == 2)
        until(lambda: counted(address, "manyheads_processes") == 2)
        with load(address, clients) as seen:
            until(lambda: len(seen) >= 12)
            before = counted(address, "manyheads_requests_total")
            assert before >= 12
            first, other = servers(running.pid)
            os.kill(first, signal.SIGKILL)
            killed = time.monotonic()
            until(lambda: len(set(servers(running.pid)) - {first, other}) == 1)
            until(lambda: counted(address, "manyheads_processes") == 2)
            until(lambda: sum(sent > killed for sent, _, _ in seen) >= 12)
        lost = [(sent, status) for sent, _, status in seen if status != 200]
        assert len(lost) <= clients, Counter(status for _, status in lost)
        assert all(sent < killed for sent, _ in lost)
        assert counted(address, "manyheads_requests_total") >= before
        everybody = [pid for server in servers(running.pid) for pid in (server, *children(server))]
        assert len(everybody) >= 4
        with ThreadPoolExecutor(2) as pool:
            given = {"texts": WORDS["texts"] * 100, "beams": 8}
            answers = [
                pool.submit(httpx.post, f"{address}/api/v1/translate", json=given, timeout=PATIENCE)
                for _ in range(2)
            ]
            time.sleep(0.5)
            running.send_signal(signal.SIGTERM)
            assert [each.result().status_code for each in answers] == [200, 200]
        assert running.wait(PATIENCE) == 0
        until(lambda: not any(map(alive, everybody)))
        with pytest.raises(httpx.ConnectError):
            httpx.get(address)


def end_with_the_one_that_started_them(running: subprocess.Popen[str], address: str) -> None:
    """Also after `kill -9`; with a token as ever."""
    assert httpx.get(f"{address}/metrics", timeout=60).status_code == 401
    everybody = [pid for server in servers(running.pid) for pid in (server, *children(server))]
    running.kill()
    running.wait()
    until(lambda: not any(map(alive, everybody)))


@pytest.mark.full  # as at the end of the next test
def test_processes_end_with_the_one_that_started_them() -> None:
    with process("digits", "--processes", "2", MANYHEADS_TOKEN="secret") as (running, address):
        until(lambda: len(servers(running.pid)) == 2)
        end_with_the_one_that_started_them(running, address)


GLOSSARY = {"name": "a", "source_lang": "en", "target_lang": "de", "entries": "dog\tHund"}


def test_a_glossary_of_all_processes() -> None:
    """What one process keeps, the others know: one is stopped while the other is asked.

    A process that is started again has it too. In the end all are killed.
    """
    with (
        process("digits", "--processes", "2", MANYHEADS_TOKEN="secret") as (running, address),
        httpx.Client(base_url=address, timeout=PATIENCE) as client,
    ):
        client.headers = httpx.Headers(
            {"Authorization": "Bearer secret", "Connection": "close"}  # another one may answer
        )
        until(lambda: len(servers(running.pid)) == 2)
        first, other = servers(running.pid)
        os.kill(first, signal.SIGSTOP)
        made = client.post("/v2/glossaries", json=GLOSSARY)
        os.kill(other, signal.SIGSTOP)
        os.kill(first, signal.SIGCONT)
        assert made.status_code == 201, made.text
        where = f"/v2/glossaries/{made.json()['glossary_id']}"
        assert client.get(f"{where}/entries").text == "dog\tHund"
        os.kill(other, signal.SIGKILL)
        until(lambda: len({*servers(running.pid)} - {first, other}) == 1)
        os.kill(first, signal.SIGSTOP)
        assert client.get(where).json() == made.json()
        assert client.delete(where).status_code == 204
        os.kill(first, signal.SIGCONT)
        end_with_the_one_that_started_them(running, address)


@pytest.mark.full
def test_a_glossary_is_gone_when_the_server_stops() -> None:
    for before in (1, 0):
        with process("digits", "--processes", "2") as (running, address):
            until(lambda: len(servers(running.pid)) == 2)
            if before:
                made = httpx.post(f"{address}/v2/glossaries", json=GLOSSARY, timeout=PATIENCE)
                assert made.status_code == 201, made.text
            found = httpx.get(f"{address}/v2/glossaries", timeout=PATIENCE)
            assert len(found.json()["glossaries"]) == before
            running.send_signal(signal.SIGTERM)
            assert running.wait(PATIENCE) == 0


def test_a_process_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again, for ever longer, if one has ever answered; else the command ends."""
    pauses: list[float] = []
    told, tell = Pipe(duplex=False)

    def fails(_: ServerProcesses) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    def attend(own: ServerProcesses, *_: object) -> None:
        pauses.append(round(own._due - time.monotonic()))
        own._due = 0.0
        if len(pauses) == 7:
            tell.send_bytes(b"")

    monkeypatch.setattr(ServerProcesses, "_start", fails)
    monkeypatch.setattr(ServerProcesses, "_attend", attend)
    monkeypatch.setattr(processes, "_signals", lambda: nullcontext(told))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        own = ServerProcesses(ServedOptions(), Settings(), listening, 1, own_worker=True)
        with pytest.raises(WorkerError, match="before it accepted"):
            own.run()
        assert pauses == [1, 4]
        own._failures, own._accepted = 0, True
        pauses.clear()
        own.run()
    assert pauses == [1, 4, 9, 16, 25, 30, 30]


def test_mistakes(call: Call) -> None:  # noqa: F811
    """Told before a process is started."""
    assert "There is no model" in failing(call, "multi30k", "--processes", "2")
    assert "add --ray" in failing(call, "digits", "--replicas", "2")
    assert "leave out --processes" in failing(call, "digits", "--ray", "--processes", "2")


def test_counts_of_a_killed_server_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the next one; those of one that answers stay."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = """
from manyheads.web.processes import counting
with counting() as folder:
    print(folder, flush=True)
    input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        other = server.stdout.readline().strip()
        with counting() as folder:
            assert sorted(map(str, tmp_path.iterdir())) == sorted([folder, other])
        server.kill()
        server.wait()
    assert list(map(str, tmp_path.iterdir())) == [other]
    with counting() as folder:
        assert list(map(str, tmp_path.iterdir())) == [folder]
    assert not list(tmp_path.iterdir())
