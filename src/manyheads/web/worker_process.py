"""A worker that is a process of its own, watched and started again when it dies.

torch holds Python's lock between its operators, so in a thread it would slow down the server, and
be slowed down by it; and what ends a process, such as too little memory, does not end the server.
Both ends are this program, so that what is sent may be pickled.
"""

import asyncio
import io
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
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any

from manyheads.child_process import begin_child, portable
from manyheads.memory import is_out_of_memory, without_collection
from manyheads.web.workers import Done, ModelThreads, Work, WorkerDiedError, WorkError, trail_of

LOG = logging.getLogger("manyheads.web")
STARTING = 120.0  # seconds until a process must have told that it is there
TRIES = 3  # deaths in a row, without a sign of life between them, that mean it cannot be started
LONGEST = 30.0  # seconds between two tries


class ProcessWorker:
    """Works in another process. Make it early: it imports while this process does.

    Args:
        every: seconds between two checks of its health.
        patience: seconds without an answer after which it is ended and started again.
    """

    def __init__(self, *, every: float = 2.0, patience: float = 30.0) -> None:
        self.restarts = 0
        self._every, self._patience = every, patience
        self._context = multiprocessing.get_context("spawn")
        self._running: dict[int, asyncio.Future[Done]] = {}
        self._restarted: list[Callable[[], None]] = []
        self._sender = ThreadPoolExecutor(1, "to-worker")
        self._supervisor: asyncio.Task[None] | None = None
        self._ending: weakref.finalize[Any, Any] | None = None
        self._heard: float | None = None  # when it last answered; None: not yet
        self._failures = 0
        self._closing = False
        self._died = asyncio.Event()
        self._spawn()

    @property
    def pid(self) -> int | None:
        """The process."""
        return self._process.pid

    async def start(self) -> None:
        """Listen to the process, and watch it from now on."""
        if self._supervisor is None:
            self._listen()
            self._supervisor = asyncio.create_task(self._supervise(), name="worker's supervisor")

    async def work(self, work: Work) -> Done:
        """Do a piece of work in the process, in the thread of its model.

        Raises:
            WorkerDiedError: the process ended meanwhile, or cannot be started.
        """
        await self.start()
        if self._died.is_set():
            raise WorkerDiedError
        loop = asyncio.get_running_loop()
        future = self._running[work.number] = loop.create_future()
        sender, connection = self._sender, self._connection
        try:
            # Pickled by another thread, and sent: large images would hold up the event loop.
            await loop.run_in_executor(sender, _send_work, connection, work)
            return await future
        except OSError:  # it died just now
            raise WorkerDiedError from None
        finally:
            self._running.pop(work.number, None)

    def cancel(self, number: int) -> None:
        """Stop a piece of work between two of its steps."""
        if number in self._running:
            self._sender.submit(_send, self._connection, ("cancel", number))

    def status(self) -> str:
        """Tell how the process is."""
        if self._failures >= TRIES:
            return "failed"
        return "starting" if self._heard is None or self._died.is_set() else "running"

    def when_restarted(self, act: Callable[[], None]) -> None:
        """Call a function whenever the process was started again."""
        self._restarted.append(act)

    async def close(self) -> None:
        """End the process; nobody waits for work any more."""
        self._closing = True
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.gather(self._supervisor, return_exceptions=True)
        await asyncio.to_thread(self.kill)

    def kill(self) -> None:
        """End the process at once."""
        self._closing = True
        if self._ending is not None:
            self._ending()
        self._sender.shutdown(wait=False)

    def _spawn(self) -> None:
        self._connection, theirs = self._context.Pipe()
        self._process: BaseProcess = self._context.Process(
            target=run, args=(theirs,), name="manyheads-worker"
        )
        self._process.start()
        theirs.close()  # so that the end of the process ends the connection
        self._ending = weakref.finalize(self, _end, self._process)  # also when Python ends

    def _listen(self) -> None:
        self._heard = None
        self._died = asyncio.Event()
        given = (self._connection, asyncio.get_running_loop(), self._received, self._died.set)
        threading.Thread(target=_receive, args=given, name="from-worker", daemon=True).start()

    def _received(self, number: int, content: Any) -> None:
        self._heard, self._failures = time.monotonic(), 0
        future = self._running.get(number)
        if future is None or future.done():
            return
        if isinstance(content, Exception):
            future.set_exception(content)
        else:
            future.set_result(content)

    async def _supervise(self) -> None:
        """Start the process again whenever it ends."""
        while True:
            await self._watch()
            self._failures += self._heard is None
            LOG.error("the worker's process has ended, and is started again")
            for future in self._running.values():
                if not future.done():
                    future.set_exception(WorkerDiedError())
            await asyncio.to_thread(self._process.join)
            self._connection.close()
            await asyncio.sleep(min(self._failures**2, LONGEST))
            self.restarts += 1
            self._spawn()
            self._listen()
            for act in self._restarted:
                act()

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
    content = io.BytesIO()
    _Pickler(content).dump(work)
    connection.send(("work", work.number, work.model, content.getvalue()))


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


class _Pickler(ForkingPickler):
    """Keeps the names of images, which Pillow leaves out."""

    def reducer_override(self, given: Any) -> Any:
        """Reduce an image; everything else as always."""
        from PIL import Image

        if isinstance(given, Image.Image):
            return _image, (Image.Image.__getstate__(given), getattr(given, "filename", ""))
        return NotImplemented


def _image(state: Any, name: str) -> Any:
    from PIL import Image

    found = Image.Image()
    found.__setstate__(state)
    found.filename = name  # type: ignore[attr-defined]
    return found


# --- In the other process -------------------------------------------------------------------------


def run(connection: Connection) -> None:
    """Work until the connection ends: then the server is gone."""
    begin_child(signal.SIGINT, signal.SIGTERM)  # the server ends first, after its last answer
    with without_collection():
        import manyheads.app.load
        import manyheads.app.predictors.translator  # noqa: F401 - and with it torch

    threads = ModelThreads()
    lock = threading.Lock()

    def tell(number: int, content: Any) -> None:
        with lock, suppress(OSError):
            try:
                connection.send((number, content))
            except Exception as error:  # an answer that cannot be sent
                connection.send((number, WorkError(trail_of(error), False)))

    def told(number: int, done: "Future[Done]") -> None:
        tell(number, _result(done))

    tell(0, None)
    with suppress(EOFError, OSError):
        while True:
            match connection.recv():
                case ("work", number, model, content):
                    future = threads.submit(number, model, partial(ForkingPickler.loads, content))
                    future.add_done_callback(partial(told, number))
                case ("cancel", number):
                    threads.cancel(number)
                case ("ping",):
                    tell(0, None)
    os._exit(0)  # without waiting for work that nobody waits for


def _result(done: "Future[Done]") -> Done | Exception:
    error = done.exception()
    if error is not None:
        return _portable(error)
    found = done.result()
    return replace(found, outcomes=[_portable_outcome(each) for each in found.outcomes])


def _portable_outcome(outcome: Any) -> Any:
    return _portable(outcome) if isinstance(outcome, Exception) else outcome


def _portable(error: BaseException) -> Exception:
    """Return an error that can be sent: ours as they are, of others where they were raised."""
    return portable(error) or WorkError(trail_of(error), is_out_of_memory(error))
