"""Workers: they own models and run functions with them.

A model belongs to one thread, as the recorder of attention does. The threads are in this process,
or in one of their own (`worker_process.py`): a queue does not know which.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from manyheads.cancellation import WorkCancelledError, cancellable, raise_if_cancelled
from manyheads.errors import ManyheadsError

Answers = Callable[[Any, Sequence[Any]], list[Any]]  # of a model to inputs, one for each
Load = Callable[[], Any]  # loads a model; one with another `version` replaces it
Reply = Callable[[Any], Coroutine[Any, Any, Any]]  # answers a question that work asks
# For each group of inputs its answers, or why there are none.
Outcomes = list[list[Any] | Exception]


class WorkerDiedError(Exception):
    """The worker's process ended while it worked, or cannot be started."""


class WorkError(Exception):
    """An unforeseen error in another process: it may hold a client's text, and stays there."""

    def __init__(self, trail: str, out_of_memory: bool) -> None:
        self.trail, self.out_of_memory = trail, out_of_memory
        super().__init__(trail, out_of_memory)


@dataclass(frozen=True)
class Work:
    """Groups of inputs to answer, each of another client; the same function answers all.

    For a process, all of it must be picklable.
    """

    number: int
    model: str
    load: Load  # called when the model is not in memory
    answers: Answers
    groups: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Done:
    """Work that is done."""

    outcomes: Outcomes
    facts: Mapping[str, Any] = field(default_factory=dict)  # of the model, if it is in memory
    seconds: float = 0.0  # that it took, without loading


_local = threading.local()


def ask_server(question: Any) -> Any:
    """Ask whoever gave the work that this thread does, and wait for the answer.

    Raises:
        WorkCancelledError: nobody waits for the work any more.
    """
    future: Future[Any] = _local.ask(question)
    try:
        while True:
            try:
                return future.result(0.1)
            except TimeoutError:
                if future.done():
                    raise
                raise_if_cancelled()
    finally:
        future.cancel()


def answer(own: Any, answers: Answers, groups: Sequence[Sequence[Any]]) -> Outcomes:
    """Answer groups of inputs together; if that fails, find out which of them are wrong."""
    try:
        results = iter(answers(own, [each for group in groups for each in group]))
        return [[next(results) for _ in group] for group in groups]
    except WorkCancelledError as error:
        return [error] * len(groups)
    except Exception as error:
        if len(groups) == 1:
            return [error]
        if not isinstance(error, ManyheadsError):
            half = len(groups) // 2  # such as too little memory for all of them
            return [*answer(own, answers, groups[:half]), *answer(own, answers, groups[half:])]
        # One of them is wrong, and the others should not suffer for it.
        return [outcome for group in groups for outcome in answer(own, answers, [group])]


class Worker:
    """Does work for queues, one piece at a time for each model: in threads of this process.

    For engines that leave Python's lock while they compute; a `ProcessWorker` works in another.
    """

    failures = 0  # how often in a row it could not be started

    def __init__(self) -> None:
        # Models in memory, what is told of them, and their versions; each has a thread of its own.
        self._owned: dict[str, tuple[Any, Mapping[str, Any], str]] = {}
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._cancelled: dict[int, threading.Event] = {}

    async def start(self) -> None:
        """Get ready for work: threads begin when they are needed."""

    async def work(self, work: Work, reply: Reply | None = None) -> Done:
        """Do a piece of work, which may ask (`ask_server`), in the thread of its model.

        It is stopped if the caller is cancelled.

        Raises:
            WorkerDiedError: the worker ended meanwhile.
        """
        loop = asyncio.get_running_loop()

        def ask(question: Any) -> Future[Any]:
            assert reply is not None
            return asyncio.run_coroutine_threadsafe(reply(question), loop)

        found = self.submit(work.number, work.model, lambda: work, ask)
        try:
            return await asyncio.wrap_future(found)
        finally:
            self.cancel(work.number)

    def submit(
        self, number: int, model: str, make: Callable[[], Work], ask: Callable[[Any], "Future[Any]"]
    ) -> "Future[Done]":
        """Do work in the thread of its model, which first makes it; it asks by `ask`."""
        cancelled = self._cancelled[number] = threading.Event()

        def run() -> Done:
            try:
                _local.ask = ask
                work = make()
                version = getattr(work.load, "version", "")
                if model not in self._owned or self._owned[model][2] != version:
                    begun = time.monotonic()
                    owned = work.load()
                    facts: Mapping[str, Any] = {
                        "seconds": time.monotonic() - begun,
                        "languages": getattr(owned, "languages", None),
                    }
                    self._owned[model] = owned, facts, version
                own, facts, _ = self._owned[model]
                begun = time.monotonic()
                with cancellable(cancelled.is_set):
                    outcomes = answer(own, work.answers, work.groups)
                return Done(outcomes, facts, time.monotonic() - begun)
            finally:
                del self._cancelled[number]

        if model not in self._threads:
            self._threads[model] = ThreadPoolExecutor(1, f"model-{model}")
        return self._threads[model].submit(run)

    def cancel(self, number: int) -> None:
        """Stop a piece of work, if it still runs, between two of its steps."""
        if (found := self._cancelled.get(number)) is not None:
            found.set()

    def status(self) -> str:
        """Tell how it is: "running", "starting" or "failed"; this one runs as its process does."""
        return "running"

    def watch(self, restarted: Callable[[], None], failed: Callable[[], None]) -> None:
        """Call a function whenever it has lost its models, or could not be started: never here."""

    async def close(self) -> None:
        """End; all work is done."""
        for each in self._threads.values():
            await asyncio.to_thread(each.shutdown)


def trail_of(error: BaseException) -> str:
    """The type of an error and where it was raised; its message may hold a client's text."""
    places, trace = [], error.__traceback__
    while trace is not None:
        places.append(f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}")
        trace = trace.tb_next
    return f"{type(error).__name__} at {' '.join(places[-6:])}"
