"""The process that runs models: killed, stopped, and told that nobody waits any more."""

import asyncio
import errno
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from manyheads import load
from manyheads.asks.look_request import LookRequest
from manyheads.cancellation import WorkCancelledError, cancellable, raise_if_cancelled
from manyheads.documents.document_translation import translate_document
from manyheads.errors import UsageError
from manyheads.looking.look_inside import head_steps_at, look_at
from manyheads.tasks.translate.predictor import Translator
from manyheads.web import worker_process
from manyheads.web.batching import ModelQueue
from manyheads.web.document_sentences import with_translator
from manyheads.web.metrics import Metrics
from manyheads.web.problem_json import ProblemError
from manyheads.web.request_images import EncodedImage
from manyheads.web.served import Served, ServedOptions
from manyheads.web.settings import Limits
from manyheads.web.worker_process import ProcessWorker
from manyheads.web.worker_threads import Work, Worker, WorkerDiedError, WorkError, ask_server
from tests.web.conftest import png
from tests.web.running import Running, running

MODEL = "multi30k-en-de"
SITE = "decoder layer 1 cross"
PATIENCE = 60
# Many seconds of work for two cores.
LONG = {"texts": ["A man is cleaning a very large window of an old house."] * 90, "beams": 16}


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(scope="module")
def worker() -> ProcessWorker:
    """The process of the server below."""
    return ProcessWorker(every=0.2, patience=8)


@pytest.fixture(scope="module")
def server(worker: ProcessWorker) -> Iterator[Running]:
    """A server whose model is in a process."""
    with running([MODEL], worker=worker, limits=Limits(batch_wait=0.5)) as found:
        until(lambda: found.served.ready)
        yield found


@contextmanager
def busy(server: Running, count: int = 1) -> Iterator[list["Future[httpx.Response]"]]:
    """Ask what takes long, and go on when it runs."""
    queue = server.served.models[MODEL].queue

    def ask() -> httpx.Response:
        return httpx.post(f"{server.address}/api/v1/translate", json=LONG, timeout=PATIENCE)

    with ThreadPoolExecutor(count) as clients:
        asked = [clients.submit(ask) for _ in range(count)]
        until(lambda: queue._jobs)
        time.sleep(0.3)
        yield asked


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_dies_or_hangs_is_started_again(
    server: Running, worker: ProcessWorker, sign: signal.Signals
) -> None:
    """Who waits gets 503 and when to try again; whoever asks next is answered; none stays."""
    before, restarts = worker.pid, worker.restarts
    assert before is not None
    with busy(server) as (asked,):
        os.kill(before, sign)
        found = asked.result()
    assert found.status_code == 503, found.text
    assert int(found.headers["Retry-After"]) >= 1
    assert "process" in found.json()["detail"]
    health = [server.client.get(f"/health/{each}") for each in ("live", "ready")]
    assert health[0].status_code == 200  # the server is there, whatever its worker does
    assert health[0].json()["worker"] in ("starting", "running")
    answer = server.client.post("/api/v1/translate", json={"texts": ["A man."]})
    while answer.status_code == 503:  # between its end and its new start
        time.sleep(float(answer.headers["Retry-After"]))
        answer = server.client.post("/api/v1/translate", json={"texts": ["A man."]})
    assert answer.status_code == 200, answer.text
    assert (worker.pid, worker.restarts) != (before, restarts)
    until(lambda: server.client.get("/health/ready").status_code == 200)
    assert worker.restarts == restarts + 1
    assert not is_there(before)
    metrics = server.client.get("/metrics").text
    assert f"manyheads_worker_restarts_total {worker.restarts}.0" in metrics
    assert server.client.get("/api/v1/models").json()["models"][0]["loaded"]  # again


def test_a_worker_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five times, and then it can: who watches is told, and it answers without a restart."""
    worker = ProcessWorker(every=0.1)
    spawn, tries, enough = worker._spawn, 0, threading.Event()

    def fails() -> None:
        nonlocal tries
        tries += 1
        if tries <= 5 or not enough.is_set():
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        spawn()

    monkeypatch.setattr(worker, "_spawn", fails)
    monkeypatch.setattr(worker_process, "LONGEST", 0.1)
    with running([MODEL], worker=worker) as server:
        until(lambda: server.served.ready)
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        until(lambda: tries >= 5)
        live = server.client.get("/health/live")
        assert live.status_code == 503
        assert live.json()["status"] == live.json()["worker"] == "failed"
        assert live.json()["failed_starts"] >= 3
        assert server.client.get("/health/ready").json() == {"status": "failed"}
        asked = server.client.post("/api/v1/translate", json={"texts": ["A man."]})
        assert asked.status_code == 503
        enough.set()
        until(lambda: server.client.get("/health/live").status_code == 200)
        until(lambda: server.client.get("/health/ready").status_code == 200)
        asked = server.client.post("/api/v1/translate", json={"texts": ["A man."]})
        assert asked.status_code == 200
        assert _value(server, "manyheads_worker_failed_starts_total") == tries - 1 >= 5
        assert _value(server, "manyheads_worker_restarts_total") == 1


def test_a_worker_that_cannot_be_started_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as the one that divides documents, which is started when it is needed."""
    worker = ProcessWorker(every=0.1, early=False)
    spawn, tries = worker._spawn, 0

    def fails() -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        spawn()

    monkeypatch.setattr(worker, "_spawn", fails)

    async def ask() -> None:
        work = Work(1, "none", dict, return_the_process, [[None]])
        with pytest.raises(WorkerDiedError):
            await worker.work(work)
        while worker.status() != "running":
            await asyncio.sleep(0.05)
        assert (await worker.work(work)).outcomes == [[worker.pid]]
        await worker.close()

    asyncio.run(asyncio.wait_for(ask(), PATIENCE))


def return_the_process(_: Any, given: Any) -> list[Any]:
    return [os.getpid() for _ in given]


def ask_until_done(_: Any, given: Any) -> list[Any]:
    """Ask for the double of each number, and then for what nobody answers."""
    found = [ask_server(number) for number in given[:-1]]
    try:
        ask_server(given[-1])
    except UsageError as error:
        return [*found, str(error)]
    return [*found, None]


@pytest.mark.parametrize("make", [Worker, ProcessWorker])
def test_work_asks_the_server(make: Callable[[], Worker]) -> None:
    """Errors of ours reach the work, others end it; a question of stopped work is taken back."""

    async def ask() -> None:
        worker = make()
        waiting, left = asyncio.Event(), asyncio.Event()

        async def reply(number: int) -> int:
            if number == 0:
                raise UsageError("This is ours.")
            if number < 0:
                raise ProblemError(413, "Too large", "", remedy="")
            if number > 9:
                waiting.set()
                try:
                    await asyncio.sleep(PATIENCE)
                finally:
                    left.set()
            return 2 * number

        def work(*given: int) -> Work:
            return Work(next(numbers), "none", dict, ask_until_done, [given])

        numbers = itertools.count(1)
        done = await worker.work(work(3, 4, 0), reply)
        assert done.outcomes == [[6, 8, "This is ours."]]
        if make is Worker:
            outcome = (await worker.work(work(1, -1), reply)).outcomes[0]
            assert isinstance(outcome, ProblemError)
        else:
            with pytest.raises(ProblemError):
                await worker.work(work(1, -1), reply)
        task = asyncio.create_task(worker.work(work(10), reply))
        await waiting.wait()
        task.cancel()
        await left.wait()
        done = await worker.work(work(1, 0), reply)  # by the same thread, which is free again
        assert done.outcomes == [[2, "This is ours."]]
        await worker.close()

    asyncio.run(asyncio.wait_for(ask(), PATIENCE))


def test_documents_are_divided_elsewhere() -> None:
    """In a process that is neither the server nor the one of the models."""
    worker, dividing = ProcessWorker(), ProcessWorker()

    async def ask() -> tuple[int, bool]:
        served = Served(ServedOptions((MODEL,)), Limits(), worker, dividing)
        model = served.by_name(MODEL)
        pid = await with_translator(served, model, process_of, 1)
        text = "Two dogs play.\n\nA man sleeps.\n"
        work = partial(translate_document, text=text)
        document = await with_translator(served, model, work, len(text))
        alone = load(MODEL, Translator)(["Two dogs play.", "A man sleeps."])
        same = document.text == "{}\n\n{}\n".format(*alone)
        await served.close()
        return pid, same

    pid, same = asyncio.run(asyncio.wait_for(ask(), 2 * PATIENCE))
    assert pid == dividing.pid != worker.pid
    assert same


def process_of(_: object) -> int:
    return os.getpid()


def test_large_documents_are_bounded_together(server: Running) -> None:
    """Those above `characters`; small ones are accepted beside them."""
    own = server.served.documents
    held = 3_900_000
    own.characters.append(held)
    try:
        large = {"text": "A dog. " * 20_000, "target": "de"}
        found = server.client.post("/api/v1/translate/document", json=large)
        assert found.status_code == 429, found.text
        small = {"q": "A dog.", "source": "en", "target": "de"}
        assert server.client.post("/translate", json=small).status_code == 200
    finally:
        own.characters.remove(held)
    assert not own.characters


def test_work_is_stopped_when_its_client_leaves(server: Running, worker: ProcessWorker) -> None:
    """Not before the last of those that share it has left."""
    stopped = f'manyheads_stopped_total{{model="{MODEL}"}}'
    before = _value(server, stopped)
    queue = server.served.models[MODEL].queue
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{server.address}/api/v1/translate", json=LONG, timeout=1.5)
    until(lambda: _value(server, stopped) == before + 1)
    until(lambda: not queue._jobs)  # the worker has said that it stopped
    assert server.client.post("/api/v1/translate", json={"texts": ["A man."]}).status_code == 200
    text = "\n\n".join(f"A man is cleaning window number {n} of a house." for n in range(5000))
    document = {"text": text, "model": MODEL, "stream": True}
    with server.client.stream("POST", "/api/v1/translate/document", json=document) as stream:
        lines = stream.iter_lines()  # which closes the connection when it is forgotten
        assert '"translated"' in next(lines)
        until(lambda: queue._jobs)
        assert server.served.documents.characters == [len(text)]
    until(lambda: not queue._jobs and not queue._waiting)
    until(lambda: not server.served.documents.characters)


def test_work_is_stopped_after_its_time() -> None:
    """The client is told, and the model is free."""
    with running([MODEL], limits=Limits(answer=0.5)) as server:
        until(lambda: server.served.ready)
        found = server.client.post("/api/v1/translate", json=LONG)
        assert found.status_code == 503
        assert found.json()["title"] == "Too slow"
        queue = server.served.models[MODEL].queue
        until(lambda: not queue._jobs)
        assert _value(server, f'manyheads_stopped_total{{model="{MODEL}"}}') == 1


def _value(server: Running, name: str) -> float:
    lines = server.client.get("/metrics").text.splitlines()
    return next((float(each.split()[-1]) for each in lines if each.startswith(name)), 0.0)


@pytest.mark.parametrize("options", [{"beams": 1}, {"beams": 4}, {"sample": True}])
def test_a_search_stops_between_its_steps(options: dict[str, Any]) -> None:
    """Greedy, with beams, and where tokens are drawn."""
    own: Any = load(MODEL)
    request = own.request(texts=(LONG["texts"][0],), **options)  # type: ignore[index]
    steps = 0

    def third() -> bool:
        nonlocal steps
        steps += 1
        return steps == 4  # one check lies in front of the search

    with cancellable(third), pytest.raises(WorkCancelledError):
        own.answer(request)
    assert steps == 4
    assert own.answer(request)[0].translation  # and nothing of it stays


def test_a_look_stops_between_its_steps() -> None:
    """In its search, its maps and its explanations; for one head alone, too."""
    own: Any = load(MODEL)
    request = LookRequest(given="A man is cleaning a window.", kind="text", integrated=False)

    def steps(act: Callable[[], object], last: int | None = None) -> int:
        count = 0

        def is_last() -> bool:
            nonlocal count
            count += 1
            return count == last

        with cancellable(is_last):
            if last is None:
                act()
            else:
                with pytest.raises(WorkCancelledError):
                    act()
        return count

    look, head = partial(look_at, own, request), partial(head_steps_at, own, request, SITE, 1, 1)
    for act in (look, head):
        whole = steps(act)
        assert whole > 30
        assert [steps(act, last) for last in (1, whole // 2, whole)] == [1, whole // 2, whole]


def work_until_cancelled(_: Any) -> None:
    while True:
        raise_if_cancelled()
        time.sleep(0.01)


@pytest.mark.parametrize("make", [Worker, ProcessWorker])
def test_only_work_that_nobody_waits_for_is_stopped(make: Callable[[], Worker]) -> None:
    """In a thread and in a process: the next work is done by the same worker."""

    async def ask() -> None:
        worker = make()
        queue = ModelQueue("none", partial(dict, a=1), worker, Limits(), Metrics())
        task = asyncio.create_task(queue.call(work_until_cancelled))
        while not queue._jobs:
            await asyncio.sleep(0.01)
        next_task = asyncio.create_task(queue.call(len))
        await asyncio.sleep(0.2)
        assert not next_task.done()
        task.cancel()
        assert await next_task == 1
        assert task.cancelled()
        await queue.close()
        await worker.close()

    asyncio.run(asyncio.wait_for(ask(), PATIENCE))


def raise_of_ours(_: Any) -> None:
    raise UsageError("This is ours.")


def raise_of_others(_: Any) -> None:
    raise ZeroDivisionError("what a client wrote")


def return_a_lock(_: Any) -> Any:
    return threading.Lock()


def size_and_name(_: Any, given: Any) -> list[Any]:
    images = map(EncodedImage.decode, given)
    return [(each.size, each.mode, getattr(each, "filename", "")) for each in images]


def test_what_a_process_sends_back() -> None:
    """Our errors as they are, others without their texts; images keep their names."""

    async def ask() -> None:
        worker = ProcessWorker()
        queue = ModelQueue("none", dict, worker, Limits(), Metrics())
        with pytest.raises(UsageError, match=r"This is ours\."):
            await queue.call(raise_of_ours)
        with pytest.raises(WorkError, match=r"ZeroDivisionError at .*test_worker") as found:
            await queue.call(raise_of_others)
        assert "client" not in str(found.value)
        with pytest.raises(WorkError):
            await queue.call(return_a_lock)
        image = EncodedImage.read("image 1", png((3, 2)), 6)
        done = await worker.work(Work(10**9, "none", dict, size_and_name, [[image]]))
        assert done.outcomes == [[((3, 2), "RGB", "image 1")]]
        await queue.close()
        await worker.close()
        assert worker.pid is not None
        assert not Path(f"/proc/{worker.pid}").exists()

    asyncio.run(asyncio.wait_for(ask(), PATIENCE))


def test_it_ends_with_its_server() -> None:
    """Also when the server is killed: the connection ends, and with it the process."""
    code = (
        "import time; from manyheads.web.worker_process import ProcessWorker\n"
        "if __name__ == '__main__':\n"
        f"    print(ProcessWorker().pid, flush=True); time.sleep({PATIENCE})"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as found:
        assert found.stdout is not None
        pid = int(found.stdout.readline())
        found.kill()
    until(lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid))


def _is_zombie(pid: int) -> bool:
    """Whoever adopts a process may never ask for its end."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"
