"""A worker that is a process of its own, watched and started again when it dies.

torch holds Python's lock between its operators, so in a thread it would slow down the server, and
be slowed down by it; and what ends a process, such as too little memory, does not end the server.
Both ends are this program, so that what is sent may be pickled.
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any

from manyheads.child_process import begin_child, portable
from manyheads.memory import is_out_of_memory, without_collection
from manyheads.web.worker_threads import (
    Done,
    Reply,
    Work,
    Worker,
    WorkerDiedError,
    WorkError,
    trail_of,
)

LOG = logging.getLogger("manyheads.web")
STARTING = 120.0  # seconds until a process must have told that it is there
TRIES = 3  # failed starts in a row, without a sign of life between them, that mean it has failed
LONGEST = 30.0  # seconds between two tries


@dataclass(frozen=True)
class _Question:
    """What work asks of the server."""

    content: Any


class ProcessWorker(Worker):
    """Works in another process. Make it early: it imports while this process does.

    Args:
        every: seconds between two checks of its health.
        patience: seconds without an answer after which it is ended and started again.
        early: start the process now, and not when it is needed.
    """

    def __init__(self, *, every: float = 2.0, patience: float = 30.0, early: bool = True) -> None:
        self.restarts = 0
        self._every, self._patience = every, patience
        self._context = multiprocessing.get_context("spawn")
        self._running: dict[int, asyncio.Future[Done]] = {}
        self._replies: dict[int, Reply] = {}
        self._replying: set[asyncio.Task[None]] = set()
        self._restarted: Callable[[], None] = lambda: None
        self._failed: Callable[[], None] = lambda: None
        self._sender = ThreadPoolExecutor(1, "to-worker")
        self._supervisor: asyncio.Task[None] | None = None
        self._ending: weakref.finalize[Any, Any] | None = None
        self._heard: float | None = None  # when it last answered; None: not yet
        self.failures = 0
        self._died = asyncio.Event()
        self._process: BaseProcess | None = None
        if early:
            self._spawn()

    @property
    def pid(self) -> int | None:
        """The process."""
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Listen to the process, and watch it from now on."""
        if self._supervisor is None:
            self._begin()
            self._supervisor = asyncio.create_task(self._supervise(), name="worker's supervisor")

    async def work(self, work: Work, reply: Reply | None = None) -> Done:
        """Do a piece of work in the process, in the thread of its model.

        Raises:
            WorkerDiedError: the process ended meanwhile, or cannot be started.
        """
        await self.start()
        if self._died.is_set():
            raise WorkerDiedError
        loop = asyncio.get_running_loop()
        future = self._running[work.number] = loop.create_future()
        if reply is not None:
            self._replies[work.number] = reply
        sender, connection = self._sender, self._connection
        try:
            # Pickled by another thread, and sent: large files would hold up the event loop.
            await loop.run_in_executor(sender, _send_work, connection, work)
            return await future
        except OSError:  # it died just now
            raise WorkerDiedError from None
        finally:
            self.cancel(work.number)  # if it still runs
            self._running.pop(work.number, None)
            self._replies.pop(work.number, None)

    def cancel(self, number: int) -> None:
        """Stop a piece of work between two of its steps."""
        if number in self._running:
            self._sender.submit(_send, self._connection, ("cancel", number))

    def status(self) -> str:
        """Tell how the process is; failed if it could not be started several times in a row."""
        if self.failures >= TRIES or (self._supervisor is not None and self._supervisor.done()):
            return "failed"
        return "starting" if self._heard is None or self._died.is_set() else "running"

    def watch(self, restarted: Callable[[], None], failed: Callable[[], None]) -> None:
        """Call a function whenever the process was started again, or could not be started."""
        self._restarted, self._failed = restarted, failed

    async def close(self) -> None:
        """End the process; nobody waits for work any more."""
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.gather(self._supervisor, return_exceptions=True)
        await asyncio.to_thread(self.kill)

    def kill(self) -> None:
        """End the process at once."""
        if self._ending is not None:
            self._ending()
        self._sender.shutdown(wait=False)

    def _spawn(self) -> None:
        connection, theirs = self._context.Pipe()
        process = self._context.Process(target=run, args=(theirs,), name="manyheads-worker")
        try:
            process.start()
        except BaseException:
            connection.close()
            raise
        finally:
            theirs.close()  # so that the end of the process ends the connection
        self._process, self._connection = process, connection
        self._ending = weakref.finalize(self, _end, process)  # also when Python ends

    def _begin(self) -> bool:
        """Start the process, if it was not, and listen to it; False: it cannot be started."""
        try:
            if self._process is None:
                self._spawn()
            self._heard, self._died = None, asyncio.Event()
            given = (self._connection, asyncio.get_running_loop(), self._received, self._died.set)
            threading.Thread(target=_receive, args=given, name="from-worker", daemon=True).start()
        except Exception as error:  # such as too little memory, which may pass
            LOG.error("the worker's process cannot be started: %s", error)
            self._end_process()
            self._fail()
            return False
        return True

    def _end_process(self) -> None:
        self._died.set()
        if self._process is not None and self._ending is not None:
            self._ending()
            self._connection.close()
        self._process = None

    def _fail(self) -> None:
        self.failures += 1
        self._failed()

    def _received(self, number: int, content: Any) -> None:
        self._heard, self.failures = time.monotonic(), 0
        future = self._running.get(number)
        if future is None or future.done():
            return
        if isinstance(content, _Question):
            replying = asyncio.create_task(self._reply(number, future, content.content))
            self._replying.add(replying)
            replying.add_done_callback(self._replying.discard)
            future.add_done_callback(lambda _: replying.cancel())
            return
        del self._running[number]
        if isinstance(content, Exception):
            future.set_exception(content)
        else:
            future.set_result(content)

    async def _reply(self, number: int, future: "asyncio.Future[Done]", question: Any) -> None:
        """Answer a question of a piece of work; an error that is not ours ends the work."""
        try:
            reply = await self._replies[number](question)
        except Exception as error:
            reply = portable(error)
            if reply is None:
                if not future.done():
                    future.set_exception(error)
                return
        self._sender.submit(_send, self._connection, ("reply", number, reply))

    async def _supervise(self) -> None:
        """Start the process again whenever it ends; while that fails, again and again."""
        while True:
            if self._process is not None:
                await self._watch()
                if self._heard is None:
                    self._fail()
                LOG.error("the worker's process has ended, and is started again")
                for future in self._running.values():
                    if not future.done():
                        future.set_exception(WorkerDiedError())
                await asyncio.to_thread(self._end_process)
            await asyncio.sleep(min(self.failures**2, LONGEST))
            if self._begin():
                self.restarts += 1
                self._restarted()

    async def _watch(self) -> None:
        """Return when the process has ended, or was ended because it does not answer."""
        # Counted in turns of this loop: where the machine slept, or the loop stood still, what the
        # process has said meanwhile is heard before it counts as silent.
        last, silence = self._heard, 0.0
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    await self._died.wait()
                    return
            silence = silence + self._every if self._heard == last else 0.0
            last = self._heard
            if silence > (STARTING if last is None else self._patience):
                LOG.error("the worker's process does not answer")
                assert self._process is not None
                self._process.kill()
                await self._died.wait()
                return
            if self._heard is not None:
                self._sender.submit(_send, self._connection, ("ping",))


def _end(process: BaseProcess) -> None:
    process.kill()
    process.join()


def _send(connection: Connection, message: tuple[Any, ...]) -> None:
    with suppress(OSError):  # it has died, which is noticed elsewhere
        connection.send(message)


def _send_work(connection: Connection, work: Work) -> None:
    connection.send(("work", work.number, work.model, bytes(ForkingPickler.dumps(work))))


def _receive(
    connection: Connection,
    loop: asyncio.AbstractEventLoop,
    received: Callable[[int, Any], None],
    died: Callable[[], None],
) -> None:
    with suppress(RuntimeError):  # the event loop is closed
        try:
            while True:
                loop.call_soon_threadsafe(received, *connection.recv())
        except (OSError, EOFError):
            loop.call_soon_threadsafe(died)


# --- In the other process -------------------------------------------------------------------------


def run(connection: Connection) -> None:
    """Work until the connection ends: then the server is gone."""
    begin_child(signal.SIGINT, signal.SIGTERM)  # the server ends first, after its last answer
    with without_collection():
        import manyheads.predict.load
        import manyheads.tasks.translate.predictor  # noqa: F401 - and with it torch

    worker = Worker()
    lock = threading.Lock()

    def tell(number: int, content: Any) -> None:
        with lock, suppress(OSError):
            try:
                connection.send((number, content))
            except Exception as error:  # an answer that cannot be sent
                connection.send((number, WorkError(trail_of(error), False)))

    def finish(number: int, done: "Future[Done]") -> None:
        tell(number, _result(done))

    replies: dict[int, Future[Any]] = {}

    def ask(number: int, question: Any) -> "Future[Any]":
        found = replies[number] = Future()
        tell(number, _Question(question))
        return found

    tell(0, None)
    with suppress(EOFError, OSError):
        while True:
            match connection.recv():
                case ("work", number, model, content):
                    make = partial(ForkingPickler.loads, content)
                    future = worker.submit(number, model, make, partial(ask, number))
                    future.add_done_callback(partial(finish, number))
                case ("reply", number, content):
                    found = replies.pop(number)
                    if found.set_running_or_notify_cancel():  # nor was the work cancelled
                        if isinstance(content, Exception):
                            found.set_exception(content)
                        else:
                            found.set_result(content)
                case ("cancel", number):
                    worker.cancel(number)
                case ("ping",):
                    tell(0, None)
    os._exit(0)  # without waiting for work that nobody waits for


def _result(done: "Future[Done]") -> Done | Exception:
    error = done.exception()
    if error is not None:
        return _portable(error)
    work = done.result()
    return replace(
        work,
        outcomes=[
            _portable(each) if isinstance(each, Exception) else each for each in work.outcomes
        ],
    )


def _portable(error: BaseException) -> Exception:
    """Return an error that can be sent: ours as they are, of others where they were raised."""
    return portable(error) or WorkError(trail_of(error), is_out_of_memory(error))
