"""Run the server in this process, until it is told to stop."""

import asyncio
import logging
import socket
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from manyheads.errors import UsageError
from manyheads.web.app import create_app
from manyheads.web.served import Served
from manyheads.web.settings import Settings

HEADERS = 32 << 10  # bytes of the headers of a request
STOPPED = "stopped; what was accepted is answered"
LINGER = 10.0  # seconds that a connection stays open between requests


class PatientProtocol(H11Protocol):
    """Closes connections whose headers do not arrive within `patience` seconds.

    It also ends those that do not read in this time what was written to them: the operating system
    and this process keep a few hundred kilobytes of an answer, and all of it must be read in turn.
    """

    def __init__(self, *given: Any, patience: float, **named: Any) -> None:
        super().__init__(*given, **named)
        self._patience = patience
        self.access_log = False  # it would hold paths and queries; `request_guard.py` has its own

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for headers."""
        super().connection_made(transport)
        self._late: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._wait()

    def pause_writing(self) -> None:
        """Wait until the client has read what was written, or end the connection."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._patience, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop waiting: it has read most of it."""
        self._cancel(self._unread)
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection; if its last answer is not read, end it."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(self._patience, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        """Wait on, or stop when the headers are there; of each request of a connection."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._cancel(self._late)
        self._cancel(self._unread)
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._cancel(self._late)
            self._late = None
        elif self._late is None:
            self._late = self.loop.call_later(self._patience, self.transport.close)

    def _cancel(self, timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


def bind(settings: Settings) -> socket.socket:
    """Take the address, before models are loaded.

    Raises:
        UsageError: it is taken, or not one of this machine.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except (OSError, OverflowError) as error:
        listening.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"The server cannot listen to {settings.host} with `port={settings.port}`: {reason}. "
            "Name another one; 0 takes any that is free."
        ) from None
    return listening


class Server(uvicorn.Server):
    """Calls a function, in a thread, when it accepts requests."""

    tell: Callable[[], object] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell."""
        await super().startup(sockets)
        if self.started and self.tell is not None:
            threading.Thread(target=self.tell, daemon=True).start()


def make_server(served: Served, settings: Settings) -> Server:
    """Make the server, which nobody runs yet."""
    protocol: Any = partial(PatientProtocol, patience=settings.limits.receive)
    config = uvicorn.Config(
        create_app(served, settings),
        http=protocol,
        ws="none",
        loop="asyncio",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=int(LINGER),
        timeout_graceful_shutdown=int(settings.limits.answer),
        limit_concurrency=settings.limits.connections,
        h11_max_incomplete_event_size=HEADERS,
    )
    return Server(config)


def run(
    served: Served,
    settings: Settings,
    listening: socket.socket,
    started: Callable[[], object] | None = None,
) -> None:
    """Answer until SIGINT or SIGTERM; call `started`, in a thread, when requests are accepted."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    server = make_server(served, settings)
    server.tell = started
    try:
        asyncio.run(server.serve(sockets=[listening]))
    except KeyboardInterrupt:  # raised again at the end, when all is answered
        if not server.started:
            raise


def address_of(host: str, port: int) -> str:
    """Return the address of the page."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
