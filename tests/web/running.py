"""A real server on a free port of this machine, in a thread of the test's process."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from manyheads.web.served import Served, ServedOptions
from manyheads.web.server import bind, make_server
from manyheads.web.settings import Limits, Settings
from manyheads.web.worker_threads import Worker


@dataclass(frozen=True)
class Running:
    """A server that runs, and a client for it."""

    address: str
    served: Served
    client: httpx.Client


@contextmanager
def running(
    models: Sequence[str] = (),
    *,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    token: str | None = None,
    index: Path | None = None,
    worker: Worker | None = None,
) -> Iterator[Running]:
    """Start a server, and stop it when the block ends; models are in threads without `worker`."""
    settings = Settings(port=0, token=token, limits=limits)
    with bind(settings) as listening:
        served = Served(ServedOptions(tuple(models), index), limits, worker)
        server = make_server(served, settings)
        thread = threading.Thread(target=asyncio.run, args=(server.serve(sockets=[listening]),))
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            with httpx.Client(base_url=address, timeout=120, trust_env=False) as client:
                while not server.started:
                    assert thread.is_alive()
                    thread.join(0.01)
                yield Running(address, served, client)
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()
