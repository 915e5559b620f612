"""Replicas on Ray Serve: one that is killed is replaced, and only what it was answering is lost."""

import os
import signal
import sys
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from tests.web.test_process import alive, children, process
from tests.web.test_processes import load, until

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs manyheads[ray]"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
]


def descendants(pid: int) -> list[int]:
    return [each for child in children(pid) for each in (child, *descendants(child))]


def replicas(pid: int) -> set[int]:
    """The processes of replicas, by the title that Ray gives them."""

    def title(each: int) -> bytes:
        try:
            return Path(f"/proc/{each}/cmdline").read_bytes()
        except OSError:
            return b""

    return {each for each in descendants(pid) if title(each).startswith(b"ray::ServeReplica")}


def test_one_of_two_is_killed_under_load() -> None:
    """Every request that is sent after it is dead is answered; a third replica takes its place."""
    clients = 8
    options = ("multi30k-en-de", "--ray", "--replicas", "2")
    with process(*options, MANYHEADS_TOKEN="secret") as (running, address):
        assert httpx.get(f"{address}/api/v1/models", timeout=60).status_code == 401
        until(lambda: len(replicas(running.pid)) == 2)
        first, other = replicas(running.pid)
        with load(address, clients, token="secret") as seen:
            until(lambda: len(seen) >= 100)
            os.kill(first, signal.SIGKILL)
            killed = time.monotonic()
            until(lambda: len(replicas(running.pid) - {first, other}) == 1)
            until(lambda: sum(sent > killed for sent, _, _ in seen) >= 300)
        everybody = descendants(running.pid)
        running.send_signal(signal.SIGTERM)
        assert running.wait(120) == 0
        until(lambda: not any(map(alive, everybody)))
    lost = [(round(sent - killed, 3), status) for sent, _, status in seen if status != 200]
    flying = [1 for sent, answered, _ in seen if sent < killed < answered]
    counted = Counter(status for _, status in lost)
    print(f"{len(seen)} requests, {len(flying)} in flight at the kill, lost: {lost}, {counted}")
    assert len(lost) <= len(flying)
    assert all(sent < 0 for sent, _ in lost), lost
