"""Requests of many clients are merged; the queue is bounded; what nobody waits for leaves it."""

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from manyheads import load
from manyheads.asks.translate_request import TranslateRequest
from manyheads.errors import UsageError
from manyheads.web.batching import Job, ModelQueue
from manyheads.web.metrics import Metrics
from manyheads.web.problem_json import ProblemError
from manyheads.web.settings import Limits
from manyheads.web.worker_threads import Worker
from tests.web.running import running

TEXTS = [
    "A man is cleaning a window.",
    "Two dogs play in the snow.",
    "A woman in a red dress is dancing on the street.",
    "Children.",
    "A boy jumps into the water while his friends watch him from the bridge.",
    "The group is eating.",
]


class Echo:
    """Owns nothing but notes what it was given, in which thread; stands still when told to."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.threads: set[int] = set()
        self.gate = threading.Event()
        self.gate.set()

    def answers(self, given: Sequence[str]) -> list[str]:
        self.gate.wait(30)
        self.threads.add(threading.get_ident())
        self.batches.append(list(given))
        if "wrong" in given:
            raise UsageError("One of them is wrong.")
        return [each.upper() for each in given]


def queue_of(echo: Echo, **limits: float) -> ModelQueue:
    given = Limits(**limits)  # type: ignore[arg-type]
    return ModelQueue("echo", lambda: echo, Worker(), given, Metrics())


def job(*texts: str, key: str | None = "k", cost: int = 1) -> Job:
    return Job(lambda own, given: own.answers(given), texts, cost, key)


async def until(condition: object) -> None:
    while not condition():  # type: ignore[operator]
        await asyncio.sleep(0.001)


def test_equal_requests_are_merged() -> None:
    """Those with another key, and those without one, are answered alone; each gets its own."""

    async def ask() -> None:
        echo = Echo()
        queue = queue_of(echo)
        echo.gate.clear()
        first = asyncio.create_task(queue.ask(job("busy")))
        await until(lambda: queue._running)
        tasks = [
            asyncio.create_task(queue.ask(each))
            for each in (
                job("a", "b"),
                job("other", key="j"),
                job("c"),
                job("alone", key=None),
                job("large", cost=5000),
            )
        ]
        await asyncio.sleep(0)
        echo.gate.set()
        found = await asyncio.gather(first, *tasks)
        assert found == [["BUSY"], ["A", "B"], ["OTHER"], ["C"], ["ALONE"], ["LARGE"]]
        assert echo.batches == [["busy"], ["large"], ["a", "b", "c"], ["other"], ["alone"]]
        assert len(echo.threads) == 1
        await queue.close()

    asyncio.run(ask())


def test_large_requests_are_answered_in_parts_and_small_ones_in_between() -> None:
    """Of 2 tokens each, so that what asks for 6 takes three turns; what is left waits last."""

    async def ask() -> None:
        echo = Echo()
        queue = queue_of(echo, part=2)
        echo.gate.clear()
        first = asyncio.create_task(queue.ask(job("busy")))
        await until(lambda: queue._running)
        jobs = (job(*"abcdef", cost=6), job(*"uvw", key="j", cost=3), *map(job, "xyz"))
        tasks = [asyncio.create_task(queue.ask(each)) for each in jobs]
        whole = asyncio.create_task(queue.ask(job(*"rst", key=None, cost=3)))
        await asyncio.sleep(0)
        assert queue._waiting == 15
        echo.gate.set()
        found = await asyncio.gather(first, *tasks)
        assert await whole == ["R", "S", "T"]
        assert found == [["BUSY"], [*"ABCDEF"], [*"UVW"], ["X"], ["Y"], ["Z"]]
        batches = [["busy"], [*"ab"], [*"xyz"], [*"uv"], [*"rst"], [*"cd"], ["w"], [*"ef"]]
        assert echo.batches == batches
        assert not queue._waiting
        await queue.close()

    asyncio.run(ask())


def test_a_large_request_ends_with_its_first_error_and_with_its_client() -> None:
    """Nothing of what is left is answered."""

    async def ask() -> None:
        echo = Echo()
        queue = queue_of(echo, part=2)
        with pytest.raises(UsageError):
            await queue.ask(job("a", "wrong", "b", "c", cost=4))
        echo.gate.clear()
        task = asyncio.create_task(queue.ask(job(*"defg", cost=4)))
        await until(lambda: queue._running)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not queue._waiting
        echo.gate.set()
        assert await queue.ask(job("h")) == ["H"]
        assert [each for batch in echo.batches for each in batch if each in "bcfg"] == []
        await queue.close()

    asyncio.run(ask())


def test_what_costs_too_much_is_refused_at_once() -> None:
    """Also where nothing else waits; less is allowed of what cannot be answered in parts."""

    async def ask() -> None:
        queue = queue_of(Echo(), queued=10, whole=5)
        for large in (job("a", cost=11), job("a", key=None, cost=6)):
            with pytest.raises(ProblemError) as refused:
                await queue.ask(large)
            assert refused.value.status == 413
        assert await queue.ask(job("a", cost=10)) == ["A"]
        assert await queue.ask(job("a", key=None, cost=5)) == ["A"]
        await queue.close()

    asyncio.run(ask())


def test_an_idle_model_waits_a_moment_for_more() -> None:
    """Requests that arrive one after another are one batch."""

    async def ask() -> None:
        echo = Echo()
        queue = queue_of(echo, batch_wait=0.5)

        async def later(text: str, seconds: float) -> list[str]:
            await asyncio.sleep(seconds)
            return await queue.ask(job(text))

        await asyncio.gather(later("a", 0), later("b", 0.01))
        assert echo.batches == [["a", "b"]]
        await queue.close()

    asyncio.run(ask())


def test_a_wrong_request_spoils_no_other() -> None:
    """What was merged with it is answered again without it."""

    async def ask() -> None:
        queue = queue_of(Echo(), batch_wait=0.2)
        asked = (queue.ask(job(each)) for each in ("a", "wrong", "b"))
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert found[0] == ["A"]
        assert isinstance(found[1], UsageError)
        assert found[2] == ["B"]
        await queue.close()

    asyncio.run(ask())


def test_a_full_queue_refuses_and_a_client_that_leaves_makes_room() -> None:
    """With the seconds to wait; nothing that nobody waits for is answered."""

    async def ask() -> None:
        echo = Echo()
        queue = queue_of(echo, queued=10)
        echo.gate.clear()
        running_now = asyncio.create_task(queue.ask(job("running", cost=3)))
        await until(lambda: queue._running)
        waiting = asyncio.create_task(queue.ask(job("waiting", cost=8)))
        await asyncio.sleep(0)
        with pytest.raises(ProblemError) as refused:
            await queue.ask(job("refused", cost=8))
        assert refused.value.status == 429
        # The 3 that run and the 8 that wait, at the rate of a model that was never measured.
        assert refused.value.retry_after == pytest.approx((3 + 8) / 2000)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        accepted = asyncio.create_task(queue.ask(job("accepted", cost=8)))
        await asyncio.sleep(0)
        echo.gate.set()
        assert await running_now == ["RUNNING"]
        assert await accepted == ["ACCEPTED"]
        assert echo.batches == [["running"], ["accepted"]]
        await queue.close()

    asyncio.run(ask())


def test_what_was_accepted_is_finished() -> None:
    """Closing answers what waits, and refuses the rest."""

    async def ask() -> None:
        echo = Echo()
        queue = queue_of(echo)
        echo.gate.clear()
        accepted = [asyncio.create_task(queue.ask(job(each, key=None))) for each in "abc"]
        await until(lambda: queue._running)
        closing = asyncio.create_task(queue.close())
        await asyncio.sleep(0)
        with pytest.raises(ProblemError) as refused:
            await queue.ask(job("d"))
        assert refused.value.status == 503
        echo.gate.set()
        assert await asyncio.gather(*accepted) == [["A"], ["B"], ["C"]]
        await closing

    asyncio.run(ask())


def test_answers_are_the_same_merged_and_alone() -> None:
    """Of a translator, by 24 clients at once: whatever company a text had."""
    own = load("multi30k-en-de")
    alone = [own(text) for text in TEXTS]
    with running(["multi30k-en-de"], limits=Limits(batch_wait=0.2)) as server:

        def ask(number: int) -> str:
            text = TEXTS[number % len(TEXTS)]
            found = httpx.post(
                f"{server.address}/api/v1/translate", json={"texts": [text]}, timeout=120
            )
            translation: str = found.json()["answers"][0]["translation"]
            return translation

        with ThreadPoolExecutor(24) as clients:
            merged = list(clients.map(ask, range(24)))
        metrics = server.client.get("/metrics").text
    assert merged == alone * 4
    count = float(metrics.split("manyheads_merged_requests_count{")[1].split()[1])
    assert count < 24, "no requests were merged"


def test_samples_in_parts_are_those_of_one_batch() -> None:
    """Two of each text, with the texts in turns of others: a draw depends on its text alone."""
    asked: dict[str, Any] = {"texts": TEXTS, "n_best": 2, "temperature": 0.8, "seed": 7}
    request = TranslateRequest(**asked)
    whole = load("multi30k-en-de").answer(request)
    assert len({each.text for answer in whole for each in answer.n_best}) > len(TEXTS)
    with running(["multi30k-en-de"], limits=Limits(part=request.cost // 3)) as server:
        found = server.client.post("/api/v1/translate", json=asked).json()["answers"]
        metrics = server.client.get("/metrics").text
    drawn = [[each["text"] for each in answer["n_best"]] for answer in found]
    assert drawn == [[each.text for each in answer.n_best] for answer in whole]
    batches = float(metrics.split("manyheads_merged_requests_count{")[1].split()[1])
    assert batches > 3  # the model is loaded by the first


def test_a_client_that_leaves_frees_its_place() -> None:
    """A request that waits is taken back when its connection closes."""
    with running(["multi30k-en-de"]) as server:
        server.client.post("/api/v1/translate", json={"texts": ["A man."]})
        queue = server.served.models["multi30k-en-de"].queue
        gate = threading.Event()
        assert queue._task is not None
        loop = queue._task.get_loop()
        held = asyncio.run_coroutine_threadsafe(queue.call(lambda _: gate.wait(60)), loop)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                f"{server.address}/api/v1/translate", json={"texts": ["A dog."]}, timeout=0.5
            )
        end = time.monotonic() + 30
        left = 'manyheads_left_total{model="multi30k-en-de"} 1.0'
        while left not in server.client.get("/metrics").text:
            assert time.monotonic() < end
            time.sleep(0.02)
        gate.set()
        assert held.result(60)
        assert not queue._waiting
