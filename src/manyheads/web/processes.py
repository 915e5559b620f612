"""Several processes that answer at one port, each with its own models.

They accept connections from one socket, which outlives each of them: a process that ends loses the
requests that it was answering, and none that it had not accepted. Another takes its place.
"""

import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from secrets import token_hex
from types import FrameType

from prometheus_client.multiprocess import mark_process_dead

from manyheads.child_process import begin_child
from manyheads.errors import WorkerError
from manyheads.files import UNFINISHED
from manyheads.project.lock import locked, remove_abandoned
from manyheads.web.metrics import FOLDER
from manyheads.web.served import ServedOptions
from manyheads.web.server import run
from manyheads.web.settings import Settings
from manyheads.web.worker_process import LONGEST, ProcessWorker

LOG = logging.getLogger("manyheads.web")
TRIES = 3  # in a row that a process ends before it accepts requests, where none ever has
PATIENCE = 30.0  # seconds to end, more than the longest answer may take


@dataclass
class ServerProcesses:
    """Starts processes, starts each again when it ends, and ends them all.

    Limits are those of each process.
    """

    options: ServedOptions
    settings: Settings
    listening: socket.socket
    count: int
    own_worker: bool  # models in a process of their own, beside each of these
    opens: str | None = None  # address to open in the browser
    # Each with the connection through which it tells that it accepts requests.
    _children: dict[BaseProcess, Connection] = field(default_factory=dict)
    _failures: int = 0
    _accepted: bool = False  # a process has accepted requests
    _due: float = 0.0  # when the next one may be started

    def run(self) -> None:
        """Answer until SIGINT or SIGTERM; what was accepted is finished.

        Raises:
            WorkerError: processes end again and again before they accept requests.
        """
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
        with _signals() as stopped, counting() as folder:
            glossaries = str(Path(folder) / "glossaries.sqlite")
            self.settings = replace(self.settings, glossaries=glossaries)
            try:
                while not stopped.poll():
                    while len(self._children) < self.count and time.monotonic() >= self._due:
                        try:
                            self._start()
                        except OSError as error:  # such as too little memory, which may pass
                            LOG.error("a process cannot be started: %s", error)
                            self._failures += 1
                            self._pause()
                    self._attend(stopped, folder)
                stopped.recv_bytes()
                # Nobody new: what waits to be accepted is refused now, and not at the very end.
                self.listening.close()
                for process in self._children:
                    process.terminate()  # finishes what it accepted
                end = time.monotonic() + self.settings.limits.answer + PATIENCE
                while (
                    any(process.is_alive() for process in self._children)
                    and time.monotonic() < end
                    and not stopped.poll()  # a second signal
                ):
                    wait([stopped, *(process.sentinel for process in self._children)], 0.5)
            finally:
                for process in self._children:
                    process.kill()
                    process.join()

    def _start(self) -> None:
        started, theirs = get_context("spawn").Pipe(duplex=False)
        process = get_context("spawn").Process(
            target=_answer,
            args=(self.options, self.settings, self.listening, self.own_worker, theirs),
            name="manyheads-server",
        )
        try:
            process.start()
        except OSError:
            started.close()
            raise
        finally:
            theirs.close()
        self._children[process] = started

    def _attend(self, stopped: Connection, folder: str) -> None:
        missing = len(self._children) < self.count
        patience = max(self._due - time.monotonic(), 0.0) if missing else None
        sentinels = [process.sentinel for process in self._children]
        connections = [started for started in self._children.values() if not started.closed]
        events = wait([stopped, *sentinels, *connections], patience)
        for started in connections:
            if started in events:
                self._hear(started)
        for process in list(self._children):
            if not process.is_alive():
                self._end(process, folder)

    def _hear(self, started: Connection) -> None:
        try:
            started.recv_bytes()
        except (EOFError, OSError):
            pass  # it has ended
        else:
            self._failures, self._accepted = 0, True
            if self.opens is not None:
                webbrowser.open(self.opens)
                self.opens = None
        started.close()

    def _end(self, process: BaseProcess, folder: str) -> None:
        """Note that a process has ended, and when another one is started."""
        started = self._children.pop(process)
        if not started.closed and started.poll():
            self._hear(started)
        elif not started.closed:
            self._failures += 1
        process.join()
        started.close()
        mark_process_dead(process.pid, folder)  # type: ignore[no-untyped-call]
        LOG.error("process %d has ended, and another one is started", process.pid)
        self._pause()

    def _pause(self) -> None:
        """Set when another process is started; pauses grow while processes fail to start."""
        if self._failures >= TRIES and not self._accepted:
            raise WorkerError(
                f"{TRIES} times in a row a process of the server ended before it accepted "
                "requests. Serve with `processes=1` to see why."
            )
        self._due = time.monotonic() + min(self._failures**2, LONGEST)


@contextmanager
def _signals() -> Iterator[Connection]:
    """Give a connection that can be read once for each SIGINT or SIGTERM."""
    received, tell = get_context("spawn").Pipe(duplex=False)

    def stop(_number: int, _frame: FrameType | None) -> None:
        tell.send_bytes(b"stop")

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def counting() -> Iterator[str]:
    """Give processes that are started a folder that they share, to count in; see `metrics.py`."""
    # Named and locked as what is being written, so that the next one removes what `kill -9` left.
    temporary = Path(tempfile.gettempdir())
    remove_abandoned(temporary)
    folder = temporary / UNFINISHED.format(f"metrics-{token_hex(8)}")
    folder.mkdir(mode=0o700)
    os.environ[FOLDER] = str(folder)
    try:
        with locked(folder, wait=True):
            yield str(folder)
    finally:
        del os.environ[FOLDER]
        shutil.rmtree(folder, ignore_errors=True)


def _answer(
    options: ServedOptions,
    settings: Settings,
    listening: socket.socket,
    own_worker: bool,
    started: Connection,
) -> None:
    begin_child()
    worker = ProcessWorker() if own_worker else None
    try:
        served = options.make(settings.limits, worker)
        run(served, settings, listening, lambda: started.send_bytes(b"started"))
    finally:
        if worker is not None:
            worker.kill()
